// SPDX-License-Identifier: Apache-2.0
//
// recorded_results.h - the part of a record of runs (kind "run-record";
// GRIDS.md, "Records") that is for the judges: its numbers in their terms. Only
// the grid's programs read the runs themselves.
#ifndef SOFTMOE_GOLDEN_VERDICT_RECORDED_RESULTS_H_
#define SOFTMOE_GOLDEN_VERDICT_RECORDED_RESULTS_H_

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/hdf5/hdf5_file.h"
#include "golden/document/document.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

inline Hdf5Kind RunRecordKind() { return {"run-record", 5}; }

struct RecordedResults {
  // MiniatureClaims::Hash(), or RegimeDefinitions::Hash() of the experiment
  // regime.
  std::string margins_sha256;
  MiniatureResults miniature;  // none if of another grid than these two
  // "results.h5", ...: what the grid's report writes about these runs.
  std::vector<std::pair<std::string, Document>> documents;
};

// Writes groups /miniature and /results, of which nothing may exist yet; not
// the margins, which the record has anyway.
void WriteRecordedResults(const RecordedResults& results, Hdf5Writer& file);

// True if the file says that it is a record, damaged or not.
bool IsRunRecord(const std::filesystem::path& path);

// Throws EnvironmentError if the file is missing, and DataError with the remedy
// if it is damaged, or holds nothing but runs.
RecordedResults ReadRecordedResults(const std::filesystem::path& path);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_RECORDED_RESULTS_H_
