// SPDX-License-Identifier: Apache-2.0
#include "reference/rmsnorm.h"

#include "core/errors.h"

namespace softmoe::reference {
namespace {

void CheckWeight(const Matrix& hidden, const Vector& weight) {
  SOFTMOE_CHECK(weight.size() == hidden.cols())
      << "weight [" << weight.size() << "] for d_model " << hidden.cols();
}

}  // namespace

Vector ReciprocalRms(const Matrix& hidden, double epsilon) {
  return formula::ReciprocalRms<double>(hidden, epsilon);
}

Matrix RmsNormForward(const Matrix& hidden, const Vector& weight,
                      double epsilon) {
  CheckWeight(hidden, weight);
  return formula::RmsNormForward<double>(hidden, weight, epsilon);
}

RmsNormGradients RmsNormBackward(const Matrix& hidden, const Vector& weight,
                                 double epsilon, const Matrix& d_out) {
  CheckWeight(hidden, weight);
  SOFTMOE_CHECK(d_out.rows() == hidden.rows() && d_out.cols() == hidden.cols());
  return formula::RmsNormBackward<double>(hidden, weight, epsilon, d_out);
}

}  // namespace softmoe::reference
