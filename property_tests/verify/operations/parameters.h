// SPDX-License-Identifier: Apache-2.0
//
// parameters.h - parameters that several operations share: the scale of the
// data, for operations that behave alike at any scale; and, for operations on
// router scores, k, T and the spread of the scores.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_PARAMETERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_PARAMETERS_H_

#include <string>

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

inline Parameter ScaleParameter(const std::string& of) {
  return {.name = "scale",
          .kind = Parameter::Kind::kReal,
          .text = "standard deviation of " + of,
          .low = 1e-6,
          .high = 1e6,
          .typical = {1e-6, 1, 1, 1e6},
          .simple = 1};
}

// k of LapSum, below num_experts: if all weights are 1, there is no root.
inline Parameter MeanActiveParameter(const std::string& text, double low,
                                     double high) {
  return {.name = "mean_active",
          .kind = Parameter::Kind::kReal,
          .text = text + "; num_experts itself is not judged",
          .low = low,
          .high = high,
          .at_most = "num_experts",
          .below = true,
          .simple = 1};
}

inline Parameter SpreadParameter() {
  return {.name = "spread",
          .kind = Parameter::Kind::kReal,
          .text = "standard deviation of generic scores",
          .low = 1e-3,
          .high = 64,
          .typical = {0.125, 1, 1, 8},
          .simple = 1};
}

inline Parameter TemperatureParameter(const std::string& text) {
  return {.name = "temperature",
          .kind = Parameter::Kind::kReal,
          .text = text,
          .low = 0.0625,
          .high = 64,
          .typical = {0.25, 0.7, 1.7, 5, 30},
          .simple = 3};
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_PARAMETERS_H_
