// SPDX-License-Identifier: Apache-2.0
//
// random_data.h - random numbers by address: the same ones for the same seed.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_RANDOM_DATA_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_RANDOM_DATA_H_

#include <cstdint>
#include <vector>

#include "core/philox.h"

namespace softmoe::property_tests {

using Floats = std::vector<float>;

// Normal with standard deviation `scale`; `seed` and `which` identify the draw.
inline Floats NormalFloats(int64_t size, uint64_t seed, uint32_t which,
                           double scale = 1) {
  const RandomKey key{seed, RandomStream::kTestData, which, 0};
  Floats x(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    const auto words = PhiloxWords(key, static_cast<uint64_t>(i));
    x[i] = static_cast<float>(scale * NormalsFromWords(words[0], words[1])[0]);
  }
  return x;
}

// Integers in [0, limit).
inline std::vector<int32_t> RandomIds(int64_t size, int64_t limit,
                                      uint64_t seed, uint32_t which) {
  const RandomKey key{seed, RandomStream::kTestData, which, 1};
  std::vector<int32_t> ids(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    ids[i] = static_cast<int32_t>(PhiloxWords(key, i)[0] %
                                  static_cast<uint64_t>(limit));
  }
  return ids;
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_RANDOM_DATA_H_
