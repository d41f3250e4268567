// SPDX-License-Identifier: Apache-2.0
//
// bits_test_util.h - equality to the last bit: unlike with ==, -0 is not 0, and
// a NaN equals itself.
#ifndef SOFTMOE_CORE_TESTING_BITS_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_BITS_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace softmoe {

// Whether `a` and `b` have the same size and the same bits. If not, the failure
// shows the first numbers that differ.
template <typename T>
::testing::AssertionResult SameBits(const std::vector<T>& a,
                                    const std::vector<T>& b) {
  if (a.size() != b.size()) {
    return ::testing::AssertionFailure()
           << a.size() << " numbers, not " << b.size();
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;
    return ::testing::AssertionFailure()
           << "[" << i << "] of " << a.size() << ": "
           << ::testing::PrintToString(a[i]) << ", not "
           << ::testing::PrintToString(b[i]);
  }
  return ::testing::AssertionSuccess() << a.size() << " numbers, the same bits";
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_BITS_TEST_UTIL_H_
