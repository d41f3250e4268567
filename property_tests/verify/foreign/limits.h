// SPDX-License-Identifier: Apache-2.0
//
// limits.h - limits how long other people's programs may take.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIMITS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIMITS_H_

namespace softmoe::verify {

// Seconds that one call may take, however many cases it holds: `verify
// --timeout`. This is a setting of the whole program, because implementations
// are made from their names alone.
inline double& CallSeconds() {
  static double seconds = 60;
  return seconds;
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIMITS_H_
