// SPDX-License-Identifier: Apache-2.0
//
// miniature_runs.h - checks the judged runs and indexes them by their ids.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_RUNS_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_RUNS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// The runs of one row by seed; and the runs of all corpora and rows.
using SeedRuns = std::map<int64_t, const MiniatureRun*>;
using RunIndex = std::map<std::string, std::map<std::string, SeedRuns>>;

// "gcide/sparse-1/1234".
std::string NameOfRun(const std::string& corpus, const std::string& row,
                      int64_t seed);

// Indexes `runs`, which must outlive the result. Throws DataError for a run
// that is not planned or occurs twice, and for steps, factors or layers out of
// order.
RunIndex IndexRuns(const MiniatureClaims& claims,
                   const std::vector<MiniatureRun>& runs);

// Throws DataError if a number of experts occurs twice or a speed is not valid.
void RequireThroughput(const std::vector<ThroughputSamples>& throughput);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_RUNS_H_
