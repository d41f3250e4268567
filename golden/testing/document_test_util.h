// SPDX-License-Identifier: Apache-2.0
//
// document_test_util.h - documents for tests: a small one that uses every part
// of the schema, the paper's as built, and imitations of a grid's results, with
// what Judge says about them; and records of what is judged.
#ifndef SOFTMOE_GOLDEN_TESTING_DOCUMENT_TEST_UTIL_H_
#define SOFTMOE_GOLDEN_TESTING_DOCUMENT_TEST_UTIL_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "golden/document/document.h"
#include "golden/document/imported_results.h"
#include "golden/verdict/recorded_results.h"
#include "golden/verdict/verdict.h"

namespace softmoe::golden {

// Two tables (statistical and exact columns; an empty cell, counts, deviation,
// flags, notes, bold), notes, claims and fields of every class.
Document ExampleDocument();

// golden/paper/paper.h5, read once.
const Document& Paper();

// A cell of that document. Throws DataError if there is none.
const Cell& At(const std::string& table, const std::string& row,
               const std::string& column);

// Sets a measured number with four digits after the point.
void SetValue(Cell* cell, double value);

// The report of a grid that reproduces the paper's table `id` to the digit:
// `runs` runs of each row with a standard deviation of `spread` margins.
Document Reproduction(int64_t runs, double spread,
                      const std::string& id = "main_results");

// The same document with tokens of `bytes` bytes in every OpenWebText row of
// its first table; "": not known.
Document WithTokens(Document results, const std::string& bytes);

// A Reproduction whose first row, owt/sparse/k1, has tokens of half the paper's
// text, and so half its loss and deviation per token.
Document InHalfTokens(Document results);

// A record of these results, without the runs themselves.
void WriteRecord(const RecordedResults& results,
                 const std::filesystem::path& path);

// The template of a table, filled in with the golden's own facts and with its
// numbers as printed.
ImportTemplate FilledIn(const Document& golden, const Table& table);

// A cell of the first table, whose column must exist, the verdict on one, and
// the verdict on a claim. They throw InternalError if there is none.
Cell& At(Document* document, const std::string& row, const std::string& column);
const CellVerdict& Verdict(const Verdicts& verdicts, const std::string& row,
                           const std::string& column);
const ClaimVerdict& Claimed(const Verdicts& verdicts, const std::string& id);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_TESTING_DOCUMENT_TEST_UTIL_H_
