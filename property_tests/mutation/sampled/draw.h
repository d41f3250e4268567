// SPDX-License-Identifier: Apache-2.0
//
// draw.h - draws faults at random, the same ones for the same places and seed.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_DRAW_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_DRAW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/sampled/places.h"
#include "property_tests/mutation/sampled/sampled_list.h"

namespace softmoe::mutation {

// Draws places one after another, each with the same chance and none twice, and
// for each place one of its changes.
class Drawer {
 public:
  // `places` must outlive this. `prefix` begins the ids.
  Drawer(const std::vector<Place>& places, uint64_t seed, std::string prefix)
      : places_(places), seed_(seed), prefix_(std::move(prefix)) {}

  // Whether all places are drawn.
  bool IsAtEnd() const { return drawn_.size() == places_.size(); }
  // Must not be at the end.
  PlacedFault Next();

 private:
  const std::vector<Place>& places_;
  uint64_t seed_;
  std::string prefix_;
  uint64_t words_ = 0;  // used so far
  int64_t number_ = 0;  // of the next draw
  std::set<size_t> drawn_;
};

// Returns `wanted` faults that compile, in the order in which they are drawn
// for `list`, which must have begun. `check` returns what is wrong with each of
// several faults ("": nothing); it is called only for faults that `list` does
// not have, and those that do not compile, or not together with those before
// (`stand_together`), are added to `list`. Faults that the list calls broken
// are left out. Throws ConfigError if there are too few places, StoppedError.
std::vector<PlacedFault> DrawFaults(
    const std::vector<Place>& places, int64_t wanted, SampledList& list,
    const std::function<
        std::vector<std::string>(const std::vector<PlacedFault>&)>& check,
    const std::function<bool(const std::vector<PlacedFault>&)>& stand_together,
    const std::function<MeasuredFault(const PlacedFault&)>& describe);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_DRAW_H_
