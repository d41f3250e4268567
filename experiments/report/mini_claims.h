// SPDX-License-Identifier: Apache-2.0
//
// mini_claims.h - converts runs of the mini grid for the judge of the paper's
// claims in miniature (golden/FORMAT.md), and writes its verdicts as a text and
// as a table of results.h5.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_MINI_CLAIMS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_MINI_CLAIMS_H_

#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// Whether `grid`, by its names, is the one whose runs
// golden/paper/miniature.toml plans: main, not another experiment, with
// overrides of [runtime] only.
bool IsMiniature(const Grid& grid);

// The judge's view of a finished run. Curves are thinned first (ThinnedSteps),
// so that a recorded run gives the same bits as its folder.
golden::MiniatureRun MiniatureRunOf(const GridRun& run,
                                    const trainer::RunResult& result);

// The same view of any run that has ended; every number is NaN if the run
// diverged (RunState::kFailed). nullopt if the run has not ended.
std::optional<golden::MiniatureRun> MiniatureRunOf(const RunOutcome& run);

struct MiniClaims {
  golden::MiniatureClaims claims;
  golden::MiniatureResults results;
  golden::MiniatureVerdicts verdicts;
  std::vector<std::string> unplanned;  // ids of ended runs: not judged
};

// Judges the planned runs that ended; nullopt unless IsMiniature(grid). Throws
// EnvironmentError if the definitions are missing, and what RecordedUnder
// throws.
std::optional<MiniClaims> JudgeMiniClaims(const GridOutcome& outcome);

// The content of claims.txt and of the file beside a record: the verdicts, then
// every case, then mean and deviation of every row. Equal runs give equal
// bytes.
std::string ClaimsText(const MiniClaims& judged);

// Table "claims_in_miniature": one row per measure, with effect, interval,
// margin and p of its deciding case; the rest are fields. No golden has this
// table.
golden::Table ClaimsTable(const MiniClaims& judged);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_MINI_CLAIMS_H_
