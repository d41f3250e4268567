// SPDX-License-Identifier: Apache-2.0
//
// paper_source.h - builds the paper's goldens from their sources, the TOML
// files of golden/paper: printed tables, and everything that belongs to them.
#ifndef SOFTMOE_GOLDEN_PAPER_PAPER_SOURCE_H_
#define SOFTMOE_GOLDEN_PAPER_PAPER_SOURCE_H_

#include <filesystem>

#include "golden/document/document.h"

namespace softmoe::golden {

// Builds the document of paper.toml, the tables that it names, notes.toml and
// claims.toml in `folder`: intervals from the rounding rules, the counts that
// percentages stand for, fields by row, notes on the cells that they concern.
// Throws DataError with FILE:LINE:COLUMN for any inconsistency, including a
// published verdict in claims.toml that the paper's own numbers contradict, and
// EnvironmentError for a missing file.
Document BuildPaper(const std::filesystem::path& folder);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PAPER_SOURCE_H_
