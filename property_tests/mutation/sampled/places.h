// SPDX-License-Identifier: Apache-2.0
//
// places.h - where a fault can be put into a source, and which ones.
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

// An expression or a statement, as it is spelled in a file.
struct Place {
  std::string file;
  Span span;
  Syntax syntax = Syntax::kExpression;
  std::vector<Change> changes;  // at least one; in the order of kind and text
};

// Places that were left out, counted once per file and offset.
struct LeftOut {
  int64_t in_macros = 0;     // of arguments, or of what a macro stands for
  int64_t constants = 0;     // what the compiler must know
  int64_t declarations = 0;  // and what stands in one outside of functions
  int64_t messages = 0;      // within what is thrown
};

// The places of any number of translation units. A header is spelled once, in
// however many units it is; what a template is instantiated to is not spelled.
class PlaceFinder {
 public:
  // The text of a file in which places are wanted, or nothing.
  using Texts = std::function<const std::string*(const std::string& file)>;

  explicit PlaceFinder(Texts texts) : texts_(std::move(texts)) {}

  void Add(const SyntaxNode& tree);

  // In the order of file and offset.
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
