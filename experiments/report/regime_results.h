// SPDX-License-Identifier: Apache-2.0
//
// regime_results.h - converts runs of the regime experiment for its judge
// (golden/FORMAT.md, "The regime experiment"), and gives its verdicts and the
// difference between soft and sparse routing over the steps.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REGIME_RESULTS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REGIME_RESULTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"
#include "golden/verdict/regime_judge.h"

namespace softmoe::experiments {

struct RegimeResults {
  std::vector<golden::MiniatureRun> runs;  // planned runs that ended
  golden::RegimeVerdicts verdicts;
  std::vector<std::string> unplanned;  // ids of ended runs: not judged
};

// Judges the planned runs that ended; nothing unless IsRegime(grid).
// Throws EnvironmentError if the definitions are missing.
std::optional<RegimeResults> JudgeRegimeRuns(const GridOutcome& outcome);

// The content of claims.txt and of the file beside a record. Equal runs give
// equal bytes.
std::string RegimeText(const RegimeResults& judged);

// The training loss of one step minus that of the sparse rows at the same step
// and seed, read at the step's active experts: the mean over the seeds with its
// interval, in nat/token, by both readings of the sparse curve.
struct DifferencePoint {
  int64_t step = 0;
  double active = 0;  // active experts, mean over rows and seeds
  golden::RegimeReading linear, smooth;
};

struct DifferenceLine {
  std::string row;  // "primary": the mean over the primary rows
  std::vector<int64_t> seeds;
  std::vector<DifferencePoint> points;
};

// The primary estimate, then each row that is not sparse, over the judged seeds
// for which its rows and all sparse rows are finished with the same steps.
// Lines with fewer than two seeds are omitted, as are steps at which a run has
// fewer or more active experts than the sparse rows span. Steps are those of
// ThinnedSteps, so that a recorded run gives the same bits as its folder. Empty
// unless IsRegime(grid).
std::vector<DifferenceLine> DifferencesOverSteps(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REGIME_RESULTS_H_
