// SPDX-License-Identifier: Apache-2.0
//
// draw.h - draws faults at random: the same ones for the same places and seed.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_DRAW_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_DRAW_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/mutation/sampled/places.h"

namespace softmoe::mutation {

struct DrawnFault {
  std::string id;  // "PREFIX.NUMBER", the number of the draw from 0
  std::string file;
  Span span;
  Syntax syntax = Syntax::kExpression;
  std::string kind, instead;  // the change's

  Edit edit() const { return {id, span, syntax, instead}; }
};

// Draws places one after another, with equal chances and without repetition,
// and one change of each.
class Drawer {
 public:
  // `places` must outlive this. `prefix` begins the ids.
  Drawer(const std::vector<Place>& places, uint64_t seed, std::string prefix)
      : places_(places), seed_(seed), prefix_(std::move(prefix)) {}

  // Whether all places are drawn.
  bool IsAtEnd() const { return drawn_.size() == places_.size(); }
  // Requires !IsAtEnd().
  DrawnFault Next();

 private:
  const std::vector<Place>& places_;
  uint64_t seed_;
  std::string prefix_;
  uint64_t words_ = 0;  // used so far
  int64_t number_ = 0;  // of the next draw
  std::set<size_t> drawn_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_DRAW_H_
