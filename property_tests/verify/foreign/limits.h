// SPDX-License-Identifier: Apache-2.0
//
// limits.h - how long other people's programs may take.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIMITS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIMITS_H_

namespace softmoe::verify {

// Seconds of one call, however many cases it holds: `verify --timeout`. One
// setting of the program, because implementations are made by name alone.
inline double& CallSeconds() {
  static double seconds = 60;
  return seconds;
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIMITS_H_
