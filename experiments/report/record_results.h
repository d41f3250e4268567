// SPDX-License-Identifier: Apache-2.0
//
// record_results.h - what the runs of a record come to: the documents that
// //:golden judges, and the verdicts on the claims in miniature.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_

#include <filesystem>
#include <string>

#include "experiments/grids/grid_file.h"
#include "experiments/run/run_record.h"

namespace softmoe::experiments {

// Sets `record.results` by its runs of `grid`, main at the scale of the record or
// the experiment `regime`, as `grid report --from` would of them alone. Returns
// the text of the verdicts on the claims of the mini grid, or on that
// experiment; "" for another grid.
std::string SummarizeRecord(const Grid& grid, RunRecord& record);

// "golden/runs/mini_verdicts.txt": beside a record, that text.
std::filesystem::path VerdictsPath(const std::filesystem::path& record);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RECORD_RESULTS_H_
