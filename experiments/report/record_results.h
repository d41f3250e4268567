// SPDX-License-Identifier: Apache-2.0
//
// record_results.h - what the runs of a record come to: the documents that
// //:golden judges, and the verdicts on the claims in miniature.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_

#include <filesystem>
#include <optional>

#include "experiments/grids/grid_file.h"
#include "experiments/report/mini_claims.h"
#include "experiments/run/run_record.h"

namespace softmoe::experiments {

// Sets `record.results` by its runs of `grid`, main at the scale of the record,
// as `grid report --from` would of them alone. Returns the claims of the mini
// grid; nothing for another.
std::optional<MiniClaims> SummarizeRecord(const Grid& grid, RunRecord& record);

// "golden/runs/mini_verdicts.txt": beside a record, ClaimsText of it.
std::filesystem::path VerdictsPath(const std::filesystem::path& record);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_
