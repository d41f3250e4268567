// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/shuffle.h"

#include <bit>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::trainer {
namespace {

// Luby and Rackoff need 4 rounds of a random function; tiny halves (a bit or
// two) need more to reach most permutations.
constexpr uint32_t kRounds = 8;

}  // namespace

int64_t ShuffledIndex(uint64_t seed, int64_t epoch, int64_t position,
                      int64_t count) {
  SOFTMOE_CHECK(count >= 1 && count <= int64_t{1} << 62) << "count=" << count;
  SOFTMOE_CHECK(position >= 0 && position < count) << "position=" << position;
  SOFTMOE_CHECK(epoch >= 0 && epoch < int64_t{1} << 32) << "epoch=" << epoch;
  const auto limit = static_cast<uint64_t>(count);
  // The smallest 4^b >= count: fewer than 4 walks are expected.
  const int half_bits = (std::bit_width(limit - 1) + 1) / 2;
  const uint64_t half_mask = (uint64_t{1} << half_bits) - 1;

  auto value = static_cast<uint64_t>(position);
  do {  // ends: the walk is a cycle of the permutation through `position`
    uint64_t left = value >> half_bits;
    uint64_t right = value & half_mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const auto words = PhiloxWords(
          {seed, RandomStream::kShuffle, static_cast<uint32_t>(epoch), round},
          right);
      const uint64_t mixed = left ^ (words[0] & half_mask);  // half_mask < 2^31
      left = right;
      right = mixed;
    }
    value = left << half_bits | right;
  } while (value >= limit);
  return static_cast<int64_t>(value);
}

}  // namespace softmoe::trainer
