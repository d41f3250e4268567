// SPDX-License-Identifier: Apache-2.0
#include "reference/expert.h"

#include <cmath>

namespace softmoe::reference {
namespace {

// 1/(1 + e^-z), without overflow for either sign.
double Sigmoid(double z) {
  if (z >= 0) return 1 / (1 + std::exp(-z));
  const double e = std::exp(z);
  return e / (1 + e);
}

void CheckShapes(const Matrix& hidden, const Matrix& gate_up_weight,
                 const Matrix& down_weight) {
  SOFTMOE_CHECK(gate_up_weight.rows() == hidden.cols() &&
                gate_up_weight.cols() == 2 * down_weight.rows() &&
                down_weight.cols() == hidden.cols())
      << "d_model " << hidden.cols() << ", gate_up [" << gate_up_weight.rows()
      << ", " << gate_up_weight.cols() << "], down [" << down_weight.rows()
      << ", " << down_weight.cols() << "]";
}

}  // namespace

double Silu(double z) { return z * Sigmoid(z); }

double SiluDerivative(double z) {
  const double s = Sigmoid(z);
  return s * (1 + z * (1 - s));
}

Matrix ExpertForward(const Matrix& hidden, const Matrix& gate_up_weight,
                     const Matrix& down_weight) {
  CheckShapes(hidden, gate_up_weight, down_weight);
  const int64_t d_ffn = down_weight.rows();
  const Matrix gate_up = Multiply(hidden, gate_up_weight);
  const Matrix activation =
      gate_up.leftCols(d_ffn).unaryExpr(&Silu).cwiseProduct(
          gate_up.rightCols(d_ffn));
  return Multiply(activation, down_weight);
}

ExpertGradients ExpertBackward(const Matrix& hidden,
                               const Matrix& gate_up_weight,
                               const Matrix& down_weight, const Matrix& d_out) {
  CheckShapes(hidden, gate_up_weight, down_weight);
  SOFTMOE_CHECK(d_out.rows() == hidden.rows() && d_out.cols() == hidden.cols());
  const int64_t d_ffn = down_weight.rows();
  const Matrix gate_up = Multiply(hidden, gate_up_weight);
  const Matrix gate = gate_up.leftCols(d_ffn);
  const Matrix up = gate_up.rightCols(d_ffn);
  const Matrix activation = gate.unaryExpr(&Silu).cwiseProduct(up);
  const Matrix d_activation = Multiply(d_out, down_weight.transpose());
  Matrix d_gate_up(gate_up.rows(), gate_up.cols());
  d_gate_up.leftCols(d_ffn) = d_activation.cwiseProduct(up).cwiseProduct(
      gate.unaryExpr(&SiluDerivative));
  d_gate_up.rightCols(d_ffn) = d_activation.cwiseProduct(gate.unaryExpr(&Silu));
  ExpertGradients gradients;
  gradients.d_hidden = Multiply(d_gate_up, gate_up_weight.transpose());
  gradients.d_gate_up_weight = Multiply(hidden.transpose(), d_gate_up);
  gradients.d_down_weight = Multiply(activation.transpose(), d_out);
  return gradients;
}

}  // namespace softmoe::reference
