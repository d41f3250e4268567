// SPDX-License-Identifier: Apache-2.0
//
// kernel_test_support.h - random data for tests of kernels.
#ifndef SOFTMOE_KERNELS_TESTING_KERNEL_TEST_SUPPORT_H_
#define SOFTMOE_KERNELS_TESTING_KERNEL_TEST_SUPPORT_H_

#include <cstdint>
#include <vector>

#include "core/philox.h"

namespace softmoe::kernels {

// Uniform in [-1, 1), by address; `stream` keeps tensors apart.
inline std::vector<float> RandomFloats(int64_t size, uint32_t stream) {
  const RandomKey key{20260120, RandomStream::kTestData, stream, 0};
  std::vector<float> x(size);
  for (int64_t i = 0; i < size; ++i) {
    x[i] = static_cast<float>(
        2 * UniformFromWord(PhiloxWords(key, i / 4)[i % 4]) - 1);
  }
  return x;
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_TESTING_KERNEL_TEST_SUPPORT_H_
