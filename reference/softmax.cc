// SPDX-License-Identifier: Apache-2.0
#include "reference/softmax.h"

#include <cmath>

#include "reference/compensated_sum.h"

namespace softmoe::reference {

Vector Softmax(const Vector& scores) {
  const double largest = scores.maxCoeff();
  Vector result(scores.size());
  CompensatedSum sum;
  for (Eigen::Index i = 0; i < scores.size(); ++i) {
    result[i] = std::exp(scores[i] - largest);
    sum.Add(result[i]);
  }
  return result / sum.Get();
}

Vector SoftmaxVjp(const Vector& softmax, const Vector& d_softmax) {
  CompensatedSum mean;
  for (Eigen::Index i = 0; i < softmax.size(); ++i) {
    mean.Add(softmax[i] * d_softmax[i]);
  }
  return (softmax.array() * (d_softmax.array() - mean.Get())).matrix();
}

double LogSumExp(const Vector& scores) {
  const double largest = scores.maxCoeff();
  CompensatedSum sum;
  for (double score : scores) sum.Add(std::exp(score - largest));
  return largest + std::log(sum.Get());
}

}  // namespace softmoe::reference
