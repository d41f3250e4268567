// SPDX-License-Identifier: Apache-2.0
//
// expert.h - one SwiGLU expert (reference, double).
//
//   E(x) = (SiLU(x G) * (x U)) D,   SiLU(z) = z / (1 + e^-z)    SPEC.md 3.2
//
// G and U are the left and right half of gate_up_weight. No biases.
#ifndef SOFTMOE_REFERENCE_EXPERT_H_
#define SOFTMOE_REFERENCE_EXPERT_H_

#include <cmath>
#include <cstdint>

#include "reference/matrix.h"
#include "reference/scalar.h"

namespace softmoe::reference {

// Returns SiLU(z) = z s and its derivative s (1 + z (1 - s)), s = 1/(1 + e^-z),
// for a finite z.
double Silu(double z);
double SiluDerivative(double z);

// Checks that the weights have the shapes below, for one expert and `hidden`.
void CheckExpertShapes(const Matrix& hidden, const Matrix& gate_up_weight,
                       const Matrix& down_weight);

// Returns E(x) of every token.
//
// hidden [num_tokens, d_model], gate_up_weight [d_model, 2*d_ffn] (gate, then
// up), down_weight [d_ffn, d_model] -> [num_tokens, d_model].
Matrix ExpertForward(const Matrix& hidden, const Matrix& gate_up_weight,
                     const Matrix& down_weight);

template <typename N>
struct ExpertGradientsOf {
  MatrixOf<N> d_hidden;          // [num_tokens, d_model]
  MatrixOf<N> d_gate_up_weight;  // [d_model, 2*d_ffn]
  MatrixOf<N> d_down_weight;     // [d_ffn, d_model]
};
using ExpertGradients = ExpertGradientsOf<double>;

// Gradient of ExpertForward for the cotangent `d_out` [num_tokens, d_model].
ExpertGradients ExpertBackward(const Matrix& hidden,
                               const Matrix& gate_up_weight,
                               const Matrix& down_weight, const Matrix& d_out);

// The formulas, over any scalar (scalar.h).
namespace formula {

// 1/(1 + e^-z), in one of its two forms.
template <typename N>
N Sigmoid(const N& z) {
  using std::exp;
  if (PositiveForm(z)) return 1 / (1 + exp(-z));
  const N e = exp(z);
  return e / (1 + e);
}

template <typename N>
N Silu(const N& z) {
  return z * Sigmoid(z);
}

// s (1 + z (1 - s)), s = Sigmoid(z)
template <typename N>
N SiluDerivative(const N& z) {
  const N s = Sigmoid(z);
  return s * (1 + z * (1 - s));
}

// x G and x U, and what D is applied to: SiLU(x G) * (x U).
template <typename N>
struct Activation {
  MatrixOf<N> gate, up, product;  // [num_tokens, d_ffn]

  Activation(const MatrixOf<N>& hidden, const MatrixOf<N>& gate_up_weight)
      : product(hidden.rows(), gate_up_weight.cols() / 2) {
    const MatrixOf<N> gate_up = Multiply<N>(hidden, gate_up_weight);
    gate = gate_up.leftCols(product.cols());
    up = gate_up.rightCols(product.cols());
    for (int64_t t = 0; t < product.rows(); ++t) {
      for (int64_t k = 0; k < product.cols(); ++k) {
        product(t, k) = Silu(gate(t, k)) * up(t, k);
      }
    }
  }
};

// E(x) = (SiLU(x G) * (x U)) D
template <typename N>
MatrixOf<N> ExpertForward(const MatrixOf<N>& hidden,
                          const MatrixOf<N>& gate_up_weight,
                          const MatrixOf<N>& down_weight) {
  return Multiply<N>(Activation<N>(hidden, gate_up_weight).product,
                     down_weight);
}

// With g = x G, u = x U, a = SiLU(g) * u and d_a = d_out D^T:
//   d_g = d_a * u * SiLU'(g),   d_u = d_a * SiLU(g)
//   d_x = [d_g d_u] [G U]^T,   d_[G U] = x^T [d_g d_u],   d_D = a^T d_out
template <typename N>
ExpertGradientsOf<N> ExpertBackward(const MatrixOf<N>& hidden,
                                    const MatrixOf<N>& gate_up_weight,
                                    const MatrixOf<N>& down_weight,
                                    const MatrixOf<N>& d_out) {
  const int64_t d_ffn = down_weight.rows();
  const Activation<N> activation(hidden, gate_up_weight);
  const MatrixOf<N> d_activation = Multiply<N>(d_out, down_weight.transpose());
  MatrixOf<N> d_gate_up(hidden.rows(), 2 * d_ffn);
  for (int64_t t = 0; t < hidden.rows(); ++t) {
    for (int64_t k = 0; k < d_ffn; ++k) {
      const N& z = activation.gate(t, k);
      d_gate_up(t, k) =
          d_activation(t, k) * activation.up(t, k) * SiluDerivative(z);
      d_gate_up(t, d_ffn + k) = d_activation(t, k) * Silu(z);
    }
  }
  ExpertGradientsOf<N> gradients;
  gradients.d_hidden = Multiply<N>(d_gate_up, gate_up_weight.transpose());
  gradients.d_gate_up_weight = Multiply<N>(hidden.transpose(), d_gate_up);
  gradients.d_down_weight = Multiply<N>(activation.product.transpose(), d_out);
  return gradients;
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_EXPERT_H_
