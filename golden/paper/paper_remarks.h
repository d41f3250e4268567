// SPDX-License-Identifier: Apache-2.0
//
// paper_remarks.h - reads notes and claims on the paper from their TOML files.
#ifndef SOFTMOE_GOLDEN_PAPER_PAPER_REMARKS_H_
#define SOFTMOE_GOLDEN_PAPER_PAPER_REMARKS_H_

#include <filesystem>

#include "golden/document/document.h"

namespace softmoe::golden {

// Adds the claims of the file at `path` to `document`, which must already have
// its tables: ID, or ID.1, ID.2, ... if there are several pairs. Throws
// DataError, FILE:LINE:COLUMN, for a published verdict that the tables
// contradict and for missing or unknown keys; EnvironmentError if there is no
// file.
void AddClaims(const std::filesystem::path& path, Document* document);

// Adds the notes, and their ids to every cell that they concern: a note on a
// row or column belongs to all its cells, one on a table to none; "claim/ID"
// stands for all pairs of that claim, which must exist already. Throws as
// AddClaims.
void AddNotes(const std::filesystem::path& path, Document* document);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PAPER_REMARKS_H_
