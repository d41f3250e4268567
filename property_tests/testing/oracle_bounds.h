// SPDX-License-Identifier: Apache-2.0
//
// oracle_bounds.h - how far a model's numbers may be from those of PyTorch in
// golden/oracles, which are recorded with their errors.
//
// The oracle recorded e, the largest error of its own float32 runs. Errors are
// linear in the unit of rounding, so they are e 2^-29 in double (stored as
// `error`) and e in float. Another implementation makes other errors of the
// same kind, up to sqrt(n) times larger where it adds n terms one after another
// and torch adds by halves, n being the longest sum in the model. Both sides
// err: (1 + sqrt(n)) e. Both round the result: 2 units more.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_ORACLE_BOUNDS_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_ORACLE_BOUNDS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/comparator.h"
#include "core/config/config.h"
#include "core/testing/bounded.h"

namespace softmoe::property_tests {

// The longest sum on the path from `num_tokens` tokens to any output.
inline double LongestSum(const ModelConfig& m, int64_t num_tokens) {
  return static_cast<double>(
      std::max({3 * m.d_model, 2 * m.d_ffn, m.vocab_size, num_tokens}));
}
// 1 + sqrt(n)
inline double ErrorFactor(const ModelConfig& m, int64_t num_tokens) {
  return 1 + std::sqrt(LongestSum(m, num_tokens));
}

// The bound for arithmetic with unit of rounding `unit`; `error` is the
// oracle's error in double.
inline double OracleBound(double expected, double error, double factor,
                          double unit) {
  return factor * error * unit / kDoubleUnit + 2 * unit * std::abs(expected);
}

// Whether every number of a tensor is within its bound.
template <typename T>
::testing::AssertionResult MeetsOracle(std::span<const T> got,
                                       std::span<const double> expected,
                                       double error, double factor,
                                       double unit) {
  std::vector<double> bounds;
  for (const double value : expected) {
    bounds.push_back(OracleBound(value, error, factor, unit));
  }
  const Comparison comparison = Compare(got, expected, bounds);
  if (comparison.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << comparison.Text();
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_ORACLE_BOUNDS_H_
