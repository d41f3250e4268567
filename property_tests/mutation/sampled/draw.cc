// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/draw.h"

#include <fmt/core.h>

#include <array>
#include <limits>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::mutation {
namespace {

// Maps a 64-bit word to [0, count). Returns `count` for the last few words,
// which would make the first numbers likelier.
uint64_t Bounded(uint64_t word, uint64_t count) {
  const uint64_t all = std::numeric_limits<uint64_t>::max();
  return word < all - all % count ? word % count : count;
}

}  // namespace

PlacedFault Drawer::Next() {
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

std::vector<PlacedFault> DrawFaults(
    const std::vector<Place>& places, int64_t wanted, SampledList& list,
    const std::function<
        std::vector<std::string>(const std::vector<PlacedFault>&)>& check,
    const std::function<bool(const std::vector<PlacedFault>&)>& stand_together,
    const std::function<MeasuredFault(const PlacedFault&)>& describe) {
  SOFTMOE_CHECK(list.run().has_value());
  const SampledRun& run = *list.run();
  Drawer drawer(places, run.seed, IdPrefix(run));
  std::vector<PlacedFault> chosen;
  while (static_cast<int64_t>(chosen.size()) < wanted) {
    // Draws as many as are still wanted, to check them together.
    std::vector<PlacedFault> drawn, unknown;
    while (static_cast<int64_t>(chosen.size() + drawn.size()) < wanted) {
      if (drawer.IsAtEnd()) {
        throw ConfigError(fmt::format(
            "--sampled {}: of {} places only {} have a fault that compiles; "
            "ask for fewer",
            wanted, places.size(), chosen.size() + drawn.size()));
      }
      PlacedFault fault = drawer.Next();
      list.RequireSame(fault);
      const MeasuredFault* known = list.Find(fault.id);
      if (known != nullptr && !IsBuilt(known->fate)) continue;
      if (known == nullptr) unknown.push_back(fault);
      drawn.push_back(std::move(fault));
    }
    const std::vector<std::string> problems = check(unknown);
    std::map<std::string, std::string> by_id;
    for (size_t i = 0; i < unknown.size(); ++i) {
      by_id[unknown[i].id] = problems.at(i);
    }
    for (PlacedFault& fault : drawn) {
      std::string problem = by_id[fault.id];
      chosen.push_back(fault);
      if (problem.empty() && !stand_together(chosen)) {
        problem = "overlaps one that was drawn before";
      }
      if (problem.empty()) continue;
      chosen.pop_back();
      MeasuredFault failed = describe(fault);
      failed.fate = Fate::kDoesNotCompile;
      failed.reason = problem;
      list.Add(failed);
    }
  }
  return chosen;
}

}  // namespace softmoe::mutation
