// SPDX-License-Identifier: Apache-2.0
#include "reference/expert.h"

#include "core/errors.h"

namespace softmoe::reference {

void CheckExpertShapes(const Matrix& hidden, const Matrix& gate_up_weight,
                       const Matrix& down_weight) {
  SOFTMOE_CHECK(gate_up_weight.rows() == hidden.cols() &&
                gate_up_weight.cols() == 2 * down_weight.rows() &&
                down_weight.cols() == hidden.cols())
      << "d_model " << hidden.cols() << ", gate_up [" << gate_up_weight.rows()
      << ", " << gate_up_weight.cols() << "], down [" << down_weight.rows()
      << ", " << down_weight.cols() << "]";
}

double Silu(double z) { return formula::Silu<double>(z); }

double SiluDerivative(double z) { return formula::SiluDerivative<double>(z); }

Matrix ExpertForward(const Matrix& hidden, const Matrix& gate_up_weight,
                     const Matrix& down_weight) {
  CheckExpertShapes(hidden, gate_up_weight, down_weight);
  return formula::ExpertForward<double>(hidden, gate_up_weight, down_weight);
}

ExpertGradients ExpertBackward(const Matrix& hidden,
                               const Matrix& gate_up_weight,
                               const Matrix& down_weight, const Matrix& d_out) {
  CheckExpertShapes(hidden, gate_up_weight, down_weight);
  SOFTMOE_CHECK(d_out.rows() == hidden.rows() && d_out.cols() == hidden.cols());
  return formula::ExpertBackward<double>(hidden, gate_up_weight, down_weight,
                                         d_out);
}

}  // namespace softmoe::reference
