// SPDX-License-Identifier: Apache-2.0
//
// random_test_util.h - random numbers for tests, the same for the same key in
// every build and, but for the last bits of normals, on every machine.
#ifndef SOFTMOE_CORE_TESTING_RANDOM_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_RANDOM_TEST_UTIL_H_

#include <cstdint>
#include <vector>

#include "core/philox.h"

namespace softmoe {

// Returns independent normals with standard deviation `scale`; `seed` and
// `which` identify the draw.
std::vector<float> NormalFloats(int64_t size, uint64_t seed, uint32_t which,
                                double scale = 1);

// Returns integers in [0, limit), independent of NormalFloats of the same key.
std::vector<int32_t> RandomIds(int64_t size, int64_t limit, uint64_t seed,
                               uint32_t which);

// Returns numbers in [-2^14, 2^14) over many binades, so that the order of a
// sum shows in its bits.
std::vector<float> FloatsOfManyBinades(int64_t size, const RandomKey& key);

// Random numbers, in the order in which they are asked for. All code is in this
// header for programs that see headers only (bazel/shim.bzl).
class Draws {
 public:
  explicit Draws(uint64_t seed) : key_{.seed = seed} {}
  // Returns a whole number in [low, high]; requires high - low < 2^32.
  int64_t Integer(int64_t low, int64_t high) {
    const uint32_t word = PhiloxWords(key_, index_++)[0];
    return low +
           static_cast<int64_t>(word % static_cast<uint64_t>(high - low + 1));
  }
  // Returns a number in (0, 1) with 52 random bits.
  double Uniform() {
    const auto words = PhiloxWords(key_, index_++);
    const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  }

 private:
  RandomKey key_;
  uint64_t index_ = 0;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_RANDOM_TEST_UTIL_H_
