// SPDX-License-Identifier: Apache-2.0
//
// scale_parameter.h - the size of the data, for operations that behave alike at
// any size.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SCALE_PARAMETER_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SCALE_PARAMETER_H_

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

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_SCALE_PARAMETER_H_
