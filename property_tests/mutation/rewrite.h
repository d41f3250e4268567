// SPDX-License-Identifier: Apache-2.0
//
// rewrite.h - writes faults into the text of a source, each behind its switch
// (switch.h). Where faults come from is not known here: a table that somebody
// wrote (fault_table.h) finds its places by their text, others by offset.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_REWRITE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_REWRITE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe::mutation {

// Bytes [begin, end) of a text.
struct Span {
  size_t begin = 0, end = 0;
};

// What occurs where: `original`, between `before` and `after`.
struct Pattern {
  std::string before, original, after;
};

// Where `pattern.original` stands. White space counts only where it separates
// two words, so a source may be reformatted; otherwise the three texts follow
// upon each other exactly, and begin and end between tokens. Throws DataError
// if this is nowhere, or in more than one place: it then says in which lines,
// or how much of it is where.
Span FindOnce(std::string_view text, const Pattern& pattern);

// A line of the text, from 1.
int LineOf(std::string_view text, size_t offset);

enum class Syntax {
  kExpression,  // (on ? (instead) : (original)): both of one type
  kStatement,   // {if (on) {instead} else {original}}: no declaration
};

struct Edit {
  std::string id;  // value of $SOFTMOE_MUTANT that switches it on
  Span span;
  Syntax syntax = Syntax::kExpression;
  std::string instead;
};

// `text` with all edits in it, each line where it was. An edit within another
// stands in the original of that other; of several edits of one span each can
// be on. Throws DataError naming both ids if two overlap otherwise, and naming
// one that cannot be written: brackets that do not match, a comment or a
// preprocessor line to be inserted, a text replaced by itself.
std::string Rewrite(std::string_view text, std::vector<Edit> edits);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_REWRITE_H_
