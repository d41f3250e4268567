// SPDX-License-Identifier: Apache-2.0
//
// run_outcome.h - the outcome of each run of a grid, which the runner passes to
// tables, invariants, results file and report.
#ifndef SOFTMOE_EXPERIMENTS_RUN_RUN_OUTCOME_H_
#define SOFTMOE_EXPERIMENTS_RUN_RUN_OUTCOME_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "golden/verdict/miniature_judge.h"
#include "trainer/results/run_result.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

enum class RunState {
  kWaiting,      // nothing on disk
  kInterrupted,  // a checkpoint, and no result yet
  kFinished,     // `result` is there
  kFailed,       // diverged (a NumericsError); `problem` says how
};

inline bool HasEnded(RunState state) {
  return state == RunState::kFinished || state == RunState::kFailed;
}

struct RunOutcome {
  GridRun run;
  std::filesystem::path folder;
  RunState state = RunState::kWaiting;
  // Requested by the command (--rows, --corpora); must finish for exit code 0.
  bool selected = true;
  std::optional<trainer::RunResult> result;  // finished runs only
  bool recorded = false;  // `result` is from a RunRecord, its steps thinned
  std::string training_sha256;  // if recorded: the digest of all steps
  std::string problem;          // failed runs only: the error
};

// A grid and all its runs, in the order of Grid::runs.
struct GridOutcome {
  Grid grid;
  std::vector<RunOutcome> runs;
  // One for each prepared corpus; identified by the file name of its prefix,
  // which is that of CorpusPrefix.
  std::vector<trainer::PreparedCorpus> corpora;
  // From the record that `runs` were taken from, if any: the hash of the
  // definitions under which it was begun, and its benchmark.
  std::string margins_sha256;
  std::vector<golden::ThroughputSamples> throughput;
};

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_RUN_OUTCOME_H_
