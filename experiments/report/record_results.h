// SPDX-License-Identifier: Apache-2.0
//
// record_results.h - summarizes a record's runs: the documents that //:golden
// judges, and the verdicts on the claims in miniature.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_

#include <filesystem>
#include <string>

#include "experiments/grids/grid_file.h"
#include "experiments/run/run_record.h"

namespace softmoe::experiments {

// Sets `record.results` from its runs of `grid` (main at the record's scale, or
// the regime experiment), as `grid report --from` would from them alone.
// Returns the text of the verdicts on the mini grid's claims or on that
// experiment; "" for another grid.
std::string SummarizeRecord(const Grid& grid, RunRecord& record);

// The file with that text beside a record: "golden/runs/mini_verdicts.txt".
std::filesystem::path VerdictsPath(const std::filesystem::path& record);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_
