// SPDX-License-Identifier: Apache-2.0
//
// report_test_util.h - a grid with made-up results, for tests of reports.
#ifndef SOFTMOE_EXPERIMENTS_TESTING_REPORT_TEST_UTIL_H_
#define SOFTMOE_EXPERIMENTS_TESTING_REPORT_TEST_UTIL_H_

#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

struct ExampleOptions {
  std::vector<int64_t> seeds = {1234};
  bool both_variants = false;  // of tau, in soft rows
  bool paper_sizes = false;    // the paper's model, corpus and schedule
};

// Rows sparse-1, sparse-2, one SoftMoE* and one SoftMoE row, all finished, for
// which every invariant holds; losses fall from 5 to about 3. The same options
// give the same numbers.
GridOutcome ExampleOutcome(const ExampleOptions& options = {});

// The result of one such run, with 40 steps; equal runs give equal results.
trainer::RunResult ExampleResult(const GridRun& run);

// The first run of row `row_id`.
RunOutcome& RunOf(GridOutcome& outcome, const std::string& row_id);

// The final evaluations of a finished run, created if it has none.
trainer::FinalEvaluations& EvaluationsOf(RunOutcome& run);

// Hides all programs during its lifetime: PATH leads nowhere.
class NoPrograms {
 public:
  NoPrograms();
  ~NoPrograms();
  NoPrograms(const NoPrograms&) = delete;
  NoPrograms& operator=(const NoPrograms&) = delete;

 private:
  std::string path_;
};

// Removes the result of a run, which failed with `problem` or was interrupted.
void Fail(RunOutcome& run, const std::string& problem);
void Interrupt(RunOutcome& run);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_TESTING_REPORT_TEST_UTIL_H_
