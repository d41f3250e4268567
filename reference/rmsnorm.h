// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm.h - root-mean-square normalisation of each token (reference, double).
//
//   y_j = g_j x_j / rms(x),   rms(x) = sqrt(mean_j x_j^2 + epsilon)
//                                                            SPEC.md 3.2
#ifndef SOFTMOE_REFERENCE_RMSNORM_H_
#define SOFTMOE_REFERENCE_RMSNORM_H_

#include "reference/matrix.h"

namespace softmoe::reference {

// 1/rms of each row of `hidden` [num_tokens, d_model].
Vector ReciprocalRms(const Matrix& hidden, double epsilon);

// The normalised rows [num_tokens, d_model], times `weight` [d_model].
Matrix RmsNormForward(const Matrix& hidden, const Vector& weight,
                      double epsilon);

template <typename N>
struct RmsNormGradientsOf {
  MatrixOf<N> d_hidden;  // [num_tokens, d_model]
  VectorOf<N> d_weight;  // [d_model]
};
using RmsNormGradients = RmsNormGradientsOf<double>;

// Gradient of RmsNormForward for the cotangent `d_out` [num_tokens, d_model]:
//   d_x = r (v - xhat mean(v * xhat)),  v = g * d_y,  xhat = r x,  r = 1/rms
//   d_g = sum over tokens of d_y * xhat
RmsNormGradients RmsNormBackward(const Matrix& hidden, const Vector& weight,
                                 double epsilon, const Matrix& d_out);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_RMSNORM_H_
