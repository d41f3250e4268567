// SPDX-License-Identifier: Apache-2.0
//
// rewrite.h - writes faults into the text of a source, each behind its switch
// (switch.h), wherever they come from: a handwritten table (fault_table.h)
// finds its places by their text, and programs give offsets.
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

// The text `original`, between `before` and `after`.
struct Pattern {
  std::string before, original, after;
};

// Finds `pattern.original`. White space counts only between two words, so a
// source may be reformatted; otherwise the three texts must follow each other
// exactly, and begin and end between tokens. Throws DataError if the pattern is
// not found, naming the line that matches its beginning, or if it is found more
// than once, naming the lines.
Span FindOnce(std::string_view text, const Pattern& pattern);

// The offset of the other quotation mark of the string or character that begins
// at `i`, or the text's end if there is none; `i` if neither begins there.
size_t QuotationEnd(std::string_view text, size_t i);

// The line of `offset`, counted from 1.
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

// Returns `text` with all edits and unchanged line numbers. An edit inside
// another is made in the other's original text; each of several edits of one
// span can be switched on. Throws DataError naming both ids if two edits
// overlap otherwise, and naming one id if it cannot be written: brackets that
// do not match, a comment or a preprocessor line to be inserted, a text
// replaced by itself.
std::string Rewrite(std::string_view text, std::vector<Edit> edits);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_REWRITE_H_
