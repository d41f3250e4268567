// SPDX-License-Identifier: Apache-2.0
//
// philox.h - random numbers addressed by what they are for.
//
// Philox4x32-10 (Random123) is a pure function from (seed, stream, step, layer,
// index) to four 32-bit words: no state to save, and no dependence on
// threads, ranks, launch shape or order of calls. Functions that are
// R123_CUDA_DEVICE also compile for the device, under nvcc.
#ifndef SOFTMOE_CORE_PHILOX_H_
#define SOFTMOE_CORE_PHILOX_H_

// Philox4x32 needs no intrinsics, whose headers take a second to compile.
#define R123_USE_SSE 0
#include <Random123/philox.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace softmoe {

// What a draw is for. The numbers are part of every result's definition.
enum class RandomStream : uint32_t {
  kParameters = 1,   // layer: tensor index; index: element / 4
  kShuffle = 2,      // step: epoch; index: position
  kRouterNoise = 3,  // step, layer; index: token*ceil(width/4) + column/4
  kTestData = 4,     // free for tests and fuzzing
};

struct RandomKey {
  uint64_t seed = 0;
  RandomStream stream = RandomStream::kTestData;
  uint32_t step = 0;
  uint32_t layer = 0;  // < 2^24
};

// The four words at `index`.
R123_CUDA_DEVICE inline r123::Philox4x32::ctr_type PhiloxBlock(
    const RandomKey& key, uint64_t index) {
  r123::Philox4x32 philox;
  const r123::Philox4x32::ctr_type counter = {
      {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
       key.step, (key.layer << 8) | static_cast<uint32_t>(key.stream)}};
  const r123::Philox4x32::key_type seed = {
      {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)}};
  return philox(counter, seed);
}
inline std::array<uint32_t, 4> PhiloxWords(const RandomKey& key,
                                           uint64_t index) {
  const auto words = PhiloxBlock(key, index);
  return {words[0], words[1], words[2], words[3]};
}

// Uniform in [0, 1), a multiple of 2^-24: exact in float and in double, so
// that every implementation draws the same number.
R123_CUDA_DEVICE inline double UniformFromWord(uint32_t word) {
  return static_cast<double>(word >> 8) * 0x1p-24;
}

// Two independent standard normals (Box-Muller, in double).
inline std::array<double, 2> NormalsFromWords(uint32_t a, uint32_t b) {
  // (word + 1/2) / 2^32 is never 0.
  const double radius =
      std::sqrt(-2.0 * std::log((static_cast<double>(a) + 0.5) * 0x1p-32));
  const double angle = 2.0 * M_PI * ((static_cast<double>(b) + 0.5) * 0x1p-32);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Standard normals one after the other, for numbers that are made up: the same
// for the same seed and sequence.
class Normals {
 public:
  Normals(uint64_t seed, uint32_t sequence)
      : key_{.seed = seed,
             .stream = RandomStream::kTestData,
             .step = sequence} {}
  double Next() {
    const auto words = PhiloxWords(key_, index_++);
    return NormalsFromWords(words[0], words[1])[0];
  }

 private:
  RandomKey key_;
  uint64_t index_ = 0;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PHILOX_H_
