// SPDX-License-Identifier: Apache-2.0
//
// dual_functions.h - the model's functions over any kind of dual number (Dual
// of reference/dual.h, PathDual), stated once for the operations and for the
// whole model.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_DUAL_FUNCTIONS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_DUAL_FUNCTIONS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "reference/compensated_sum.h"
#include "reference/lapsum_root.h"

namespace softmoe::verify {

// a . b over `count` elements that lie `stride` apart.
template <typename Scalar>
Scalar Dot(const Scalar* a, int64_t a_stride, const Scalar* b, int64_t b_stride,
           int64_t count) {
  reference::CompensatedSum<Scalar> sum;
  for (int64_t i = 0; i < count; ++i) {
    sum.Add(a[i * a_stride] * b[i * b_stride]);
  }
  return sum.Get();
}

// One row, `weight` elementwise: x / sqrt(mean x^2 + epsilon) * weight.
template <typename Scalar>
std::vector<Scalar> RmsNormOf(const Scalar* x, const Scalar* weight,
                              Scalar epsilon, int64_t size) {
  const Scalar mean_square = Dot(x, 1, x, 1, size) / static_cast<double>(size);
  const Scalar scale = 1 / sqrt(mean_square + epsilon);
  std::vector<Scalar> y;
  for (int64_t j = 0; j < size; ++j) y.push_back(scale * x[j] * weight[j]);
  return y;
}

template <typename Scalar>
struct SoftmaxOf {
  std::vector<Scalar> weights;
  Scalar log_sum_exp;

  explicit SoftmaxOf(const std::vector<Scalar>& scores) {
    // A constant: neither result depends on what is subtracted.
    double largest = ValueOf(scores.front());
    for (const Scalar& s : scores) largest = std::max(largest, ValueOf(s));
    reference::CompensatedSum<Scalar> sum;
    for (const Scalar& score : scores) {
      weights.push_back(exp(score - largest));
      sum.Add(weights.back());
    }
    for (Scalar& weight : weights) weight /= sum.Get();
    log_sum_exp = largest + log(sum.Get());
  }
};

// u_i = (r_i - x~)/T, whose F are LapSum's weights, by the reference's closed
// form of the root.
template <typename Scalar>
struct LapSumOf {
  reference::LapSumRoot<Scalar> root;
  std::vector<Scalar> arguments;

  LapSumOf(const std::vector<Scalar>& scores, Scalar k, Scalar temperature) {
    std::vector<Scalar> sorted = scores;
    std::ranges::sort(sorted, std::greater<double>(),
                      [](const Scalar& score) { return ValueOf(score); });
    root = reference::SolveLapSumRoot(sorted, k, temperature);
    for (const Scalar& score : scores) {
      arguments.push_back((score - root.anchor) / temperature - root.offset);
    }
  }
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_DUAL_FUNCTIONS_H_
