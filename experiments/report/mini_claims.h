// SPDX-License-Identifier: Apache-2.0
//
// mini_claims.h - the runs of the mini grid as the judge of the paper's claims
// in miniature takes them (golden/FORMAT.md), and his verdicts.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_MINI_CLAIMS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_MINI_CLAIMS_H_

#include <optional>
#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// Is it, by its names, the grid whose runs golden/paper/miniature.toml plans,
// main and not another experiment, with nothing set but [runtime]?
bool IsMiniature(const Grid& grid);

// What the judge takes of a finished run. Curves are thinned first
// (ThinnedSteps), so that a recorded run gives the bits of its folder.
golden::MiniatureRun MiniatureRunOf(const GridRun& run,
                                    const trainer::RunResult& result);

struct MiniClaims {
  golden::MiniatureClaims claims;
  golden::MiniatureResults results;
  golden::MiniatureVerdicts verdicts;
  std::vector<std::string> unplanned;  // ids of finished runs: not judged
};

// Judges the planned runs that are finished; nothing if the grid is another.
// Throws EnvironmentError if the definitions are missing.
std::optional<MiniClaims> JudgeMiniClaims(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_MINI_CLAIMS_H_
