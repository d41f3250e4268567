// SPDX-License-Identifier: Apache-2.0
//
// places.h - finds the places in a source that can have a fault, and the faults
// that each can have.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PLACES_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PLACES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "property_tests/mutation/rewrite.h"
#include "property_tests/mutation/sampled/syntax_tree.h"

namespace softmoe::mutation {

// One way to get a place wrong.
struct Change {
  std::string kind;  // "operator", "comparison", "constant", "index",
                     // "arguments", "dropped", "condition", "return"
  std::string instead;
  friend auto operator<=>(const Change&, const Change&) = default;
};

// An expression or a statement as written in a file.
struct Place {
  std::string file;
  Span span;
  Syntax syntax = Syntax::kExpression;
  std::vector<Change> changes;  // at least one; sorted by kind and text
};

// Places left out, counted once per file and offset.
struct LeftOut {
  int64_t in_macros = 0;     // macro arguments, and macro expansions
  int64_t constants = 0;     // values needed at compile time
  int64_t declarations = 0;  // whole ones, and values outside functions
  int64_t messages = 0;      // inside a throw expression
};

// The places of any number of translation units. A header counts once, however
// many units include it; template instantiations are not counted.
class PlaceFinder {
 public:
  // The text of a file in which places are wanted, else nullptr.
  using Texts = std::function<const std::string*(const std::string& file)>;

  explicit PlaceFinder(Texts texts) : texts_(std::move(texts)) {}

  void Add(const SyntaxNode& tree);

  // Ordered by file and offset.
  std::vector<Place> Places() const;
  LeftOut Missing() const;

 private:
  friend class PlaceWalk;

  using Key = std::tuple<std::string, size_t, size_t, Syntax>;
  using Offsets = std::set<std::pair<std::string, int64_t>>;

  Texts texts_;
  std::map<Key, std::set<Change>> places_;
  Offsets in_macros_, constants_, declarations_, messages_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_PLACES_H_
