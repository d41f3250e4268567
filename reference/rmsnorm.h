// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm.h - root-mean-square normalisation of each token (reference, double).
//
//   y_j = g_j x_j / rms(x),   rms(x) = sqrt(mean_j x_j^2 + epsilon)
//                                                            SPEC.md 3.2
#ifndef SOFTMOE_REFERENCE_RMSNORM_H_
#define SOFTMOE_REFERENCE_RMSNORM_H_

#include <cmath>
#include <cstdint>

#include "reference/matrix.h"
#include "reference/scalar.h"

namespace softmoe::reference {

// Returns 1/rms of each row of `hidden` [num_tokens, d_model]; epsilon >= 0.
Vector ReciprocalRms(const Matrix& hidden, double epsilon);

// Returns the normalised rows [num_tokens, d_model], times `weight` [d_model].
Matrix RmsNormForward(const Matrix& hidden, const Vector& weight,
                      double epsilon);

template <typename N>
struct RmsNormGradientsOf {
  MatrixOf<N> d_hidden;  // [num_tokens, d_model]
  VectorOf<N> d_weight;  // [d_model]
};
using RmsNormGradients = RmsNormGradientsOf<double>;

// Returns the gradient of RmsNormForward for the cotangent `d_out` [num_tokens,
// d_model]:
//   d_x = r (v - xhat mean(v * xhat)),  v = g * d_y,  xhat = r x,  r = 1/rms
//   d_g = sum over tokens of d_y * xhat
RmsNormGradients RmsNormBackward(const Matrix& hidden, const Vector& weight,
                                 double epsilon, const Matrix& d_out);

// The formulas, over any scalar (scalar.h). A caller that has r = 1/rms, such
// as a backward pass that saved it, passes that instead of epsilon.
namespace formula {

// r = 1 / sqrt(mean_j x_j^2 + epsilon) of each row.
template <typename N>
VectorOf<N> ReciprocalRms(const MatrixOf<N>& hidden, const N& epsilon) {
  using std::sqrt;
  const double d_model = static_cast<double>(hidden.cols());
  VectorOf<N> reciprocal(hidden.rows());
  for (int64_t t = 0; t < hidden.rows(); ++t) {
    const N squares = Dot<N>(hidden.row(t), hidden.row(t));
    reciprocal[t] = 1 / sqrt(squares / d_model + epsilon);
  }
  return reciprocal;
}

// xhat = r x
template <typename N>
MatrixOf<N> NormalizedRows(const MatrixOf<N>& hidden,
                           const VectorOf<N>& reciprocal) {
  MatrixOf<N> normalized(hidden.rows(), hidden.cols());
  for (int64_t t = 0; t < hidden.rows(); ++t) {
    for (int64_t j = 0; j < hidden.cols(); ++j) {
      normalized(t, j) = reciprocal[t] * hidden(t, j);
    }
  }
  return normalized;
}

// y = g xhat
template <typename N>
MatrixOf<N> RmsNormForward(const MatrixOf<N>& hidden, const VectorOf<N>& weight,
                           const VectorOf<N>& reciprocal) {
  MatrixOf<N> out = NormalizedRows<N>(hidden, reciprocal);
  for (int64_t t = 0; t < out.rows(); ++t) {
    for (int64_t j = 0; j < out.cols(); ++j) out(t, j) = out(t, j) * weight[j];
  }
  return out;
}
template <typename N>
MatrixOf<N> RmsNormForward(const MatrixOf<N>& hidden, const VectorOf<N>& weight,
                           const N& epsilon) {
  return RmsNormForward<N>(hidden, weight, ReciprocalRms<N>(hidden, epsilon));
}

// d_x = r (v - xhat mean(v * xhat)),  v = d_y * g;   d_g = sum_t d_y * xhat
template <typename N>
RmsNormGradientsOf<N> RmsNormBackward(const MatrixOf<N>& hidden,
                                      const VectorOf<N>& weight,
                                      const VectorOf<N>& reciprocal,
                                      const MatrixOf<N>& d_out) {
  const double d_model = static_cast<double>(hidden.cols());
  const MatrixOf<N> normalized = NormalizedRows<N>(hidden, reciprocal);
  RmsNormGradientsOf<N> gradients;
  gradients.d_hidden.resize(hidden.rows(), hidden.cols());
  for (int64_t t = 0; t < hidden.rows(); ++t) {
    VectorOf<N> v(hidden.cols());
    for (int64_t j = 0; j < v.size(); ++j) v[j] = d_out(t, j) * weight[j];
    const N mean = Dot<N>(v, normalized.row(t)) / d_model;
    for (int64_t j = 0; j < v.size(); ++j) {
      gradients.d_hidden(t, j) =
          reciprocal[t] * (v[j] - mean * normalized(t, j));
    }
  }
  gradients.d_weight.resize(weight.size());
  for (int64_t j = 0; j < weight.size(); ++j) {
    gradients.d_weight[j] = Dot<N>(d_out.col(j), normalized.col(j));
  }
  return gradients;
}
template <typename N>
RmsNormGradientsOf<N> RmsNormBackward(const MatrixOf<N>& hidden,
                                      const VectorOf<N>& weight,
                                      const N& epsilon,
                                      const MatrixOf<N>& d_out) {
  return RmsNormBackward<N>(hidden, weight, ReciprocalRms<N>(hidden, epsilon),
                            d_out);
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_RMSNORM_H_
