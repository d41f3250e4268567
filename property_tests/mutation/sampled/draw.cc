// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/draw.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::mutation {
namespace {

// Maps a word of 64 bits to [0, count); returns `count` for the last few words,
// which would make the first numbers likelier.
uint64_t Bounded(uint64_t word, uint64_t count) {
  const uint64_t all = std::numeric_limits<uint64_t>::max();
  return word < all - all % count ? word % count : count;
}

}  // namespace

DrawnFault Drawer::Next() {
  SOFTMOE_CHECK(!IsAtEnd());
  while (true) {
    const std::array<uint32_t, 4> words =
        PhiloxWords({.seed = seed_}, words_++);
    const auto word = [&](int i) {
      return static_cast<uint64_t>(words[i]) << 32 | words[i + 1];
    };
    const uint64_t at = Bounded(word(0), places_.size());
    if (at == places_.size() || drawn_.contains(at)) continue;
    const Place& place = places_[at];
    const uint64_t which = Bounded(word(2), place.changes.size());
    if (which == place.changes.size()) continue;
    drawn_.insert(at);
    const Change& change = place.changes[which];
    return {fmt::format("{}.{}", prefix_, number_++),
            place.file,
            place.span,
            place.syntax,
            change.kind,
            change.instead};
  }
}

}  // namespace softmoe::mutation
