// SPDX-License-Identifier: Apache-2.0
//
// bit_difference.h - describes where two arrays that must be equal in bits
// differ.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_BIT_DIFFERENCE_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_BIT_DIFFERENCE_H_

#include <span>
#include <string>

namespace softmoe::gpu {

// "WHAT: 3 of 100 differ in bits, first [17]: 0.5 instead of 0.25; ", or "".
// NaN equals itself, 0 differs from -0.
std::string BitDifference(const std::string& what, std::span<const float> got,
                          std::span<const float> expected);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_BIT_DIFFERENCE_H_
