// SPDX-License-Identifier: Apache-2.0
//
// imported_results.h - somebody else's numbers: results of origin other_impl
// from a plain table of values and a description of the set-up (FORMAT.md,
// "Numbers of others").
#ifndef SOFTMOE_GOLDEN_DOCUMENT_IMPORTED_RESULTS_H_
#define SOFTMOE_GOLDEN_DOCUMENT_IMPORTED_RESULTS_H_

#include <string>

#include "golden/document/document.h"

namespace softmoe::golden {

// The text of a file, and its name in messages.
struct NamedText {
  std::string name;
  std::string text;
};

// Returns the results in both files as a document with one table, which has the
// id, columns, margins and labels of the golden's. A value is the mean over the
// seeds that have one, exact to all its digits; a percentage is of the golden's
// items. A row with a diverged seed has no measured number.
//
//   values  CSV with the columns row, seed, column and value
//   set_up  TOML: whose numbers, of which table, seeds, units, facts
// Errors   DataError and ConfigError, FILE:LINE, for names, units, seeds and
//          facts unknown to the golden or the set-up, a cell or fact given
//          twice, one run under two seeds, a value that is not a number or not
//          a percentage, and a missing fact that must match. FILE alone for a
//          seed without values; with the place in the document for a
//          placeholder.
Document ImportResults(const NamedText& values, const NamedText& set_up,
                       const Document& golden);

// The two files for a table of `golden`, with comments; only values that are ""
// or empty need filling in.
struct ImportTemplate {
  std::string values;
  std::string set_up;
};
ImportTemplate MakeImportTemplate(const Document& golden, const Table& table);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_DOCUMENT_IMPORTED_RESULTS_H_
