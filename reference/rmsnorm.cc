// SPDX-License-Identifier: Apache-2.0
#include "reference/rmsnorm.h"

namespace softmoe::reference {
namespace {

Matrix NormalizedRows(const Matrix& hidden, double epsilon) {
  return ReciprocalRms(hidden, epsilon).asDiagonal() * hidden;
}

}  // namespace

Vector ReciprocalRms(const Matrix& hidden, double epsilon) {
  return (hidden.rowwise().squaredNorm().array() /
              static_cast<double>(hidden.cols()) +
          epsilon)
      .sqrt()
      .inverse();
}

Matrix RmsNormForward(const Matrix& hidden, const Vector& weight,
                      double epsilon) {
  SOFTMOE_CHECK(weight.size() == hidden.cols())
      << "weight [" << weight.size() << "] for d_model " << hidden.cols();
  return NormalizedRows(hidden, epsilon) * weight.asDiagonal();
}

RmsNormGradients RmsNormBackward(const Matrix& hidden, const Vector& weight,
                                 double epsilon, const Matrix& d_out) {
  SOFTMOE_CHECK(d_out.rows() == hidden.rows() && d_out.cols() == hidden.cols());
  const Vector reciprocal = ReciprocalRms(hidden, epsilon);
  const Matrix normalized = NormalizedRows(hidden, epsilon);
  const Matrix v = d_out * weight.asDiagonal();
  const Vector mean = v.cwiseProduct(normalized).rowwise().mean();
  RmsNormGradients gradients;
  gradients.d_hidden =
      reciprocal.asDiagonal() * (v - mean.asDiagonal() * normalized);
  gradients.d_weight = d_out.cwiseProduct(normalized).colwise().sum();
  return gradients;
}

}  // namespace softmoe::reference
