// SPDX-License-Identifier: Apache-2.0
//
// expert.h - one SwiGLU expert (reference, double).
//
//   E(x) = (SiLU(x G) * (x U)) D,   SiLU(z) = z / (1 + e^-z)    SPEC.md 3.2
//
// G and U are the left and right half of gate_up_weight. No biases.
#ifndef SOFTMOE_REFERENCE_EXPERT_H_
#define SOFTMOE_REFERENCE_EXPERT_H_

#include "reference/matrix.h"

namespace softmoe::reference {

double Silu(double z);
double SiluDerivative(double z);  // s (1 + z (1 - s)), s = 1/(1 + e^-z)

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

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_EXPERT_H_
