// SPDX-License-Identifier: Apache-2.0
//
// document_check.h - the pieces of FirstProblem: checks that throw a Problem.
#ifndef SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_CHECK_H_
#define SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_CHECK_H_

#include <set>
#include <string>

#include "golden/document/document.h"

namespace softmoe::golden::internal {

// Caught inside FirstProblem.
struct Problem {
  std::string text;
};

// Throws "'PLACE' PROBLEM; REMEDY".
[[noreturn]] void Fail(const std::string& place, const std::string& problem,
                       const std::string& remedy);

inline constexpr const char* kFillIn =
    "fill it in where the file is made: a number without it means nothing";

// No NUL and no placeholder ("TODO", "TBD", "?", ...).
void CheckText(const std::string& place, const std::string& text);
void CheckNonEmpty(const std::string& place, const std::string& text);
// Refuses NaN, infinities and sentinels such as -999.
void CheckFinite(const std::string& place, double value);
// An id of a table or column: also the name of an HDF5 group.
void CheckPathId(const std::string& place, const std::string& id);
// An id of a row, field, note or claim: characters that references can spell.
void CheckId(const std::string& place, const std::string& id);
void CheckUnique(const std::string& place, const std::string& id,
                 std::set<std::string>* seen);

// Checks that everything named by notes and claims exists in the document.
void CheckClaims(const Document& document);
void CheckNotes(const Document& document);

}  // namespace softmoe::golden::internal

#endif  // SOFTMOE_GOLDEN_DOCUMENT_DOCUMENT_CHECK_H_
