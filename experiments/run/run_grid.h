// SPDX-License-Identifier: Apache-2.0
//
// run_grid.h - trains the runs of a grid, several at a time if asked.
#ifndef SOFTMOE_EXPERIMENTS_RUN_RUN_GRID_H_
#define SOFTMOE_EXPERIMENTS_RUN_RUN_GRID_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "experiments/grids/grid_file.h"
#include "experiments/run/grid_ranks.h"
#include "experiments/run/run_outcome.h"
#include "experiments/run/run_record.h"

namespace softmoe::experiments {

struct GridRunOptions {
  std::filesystem::path folder;     // run_folder.h
  std::vector<size_t> selected;     // indices into Grid::runs
  std::optional<RunRecord> record;  // its runs count as finished
  // Folder of the items of the tasks in [evaluations] (task_items.h).
  std::filesystem::path task_files;
  // Keyed by data.corpus: the PREFIX of token files to use instead of those
  // that the cache has or that would be prepared. Part of no hash.
  std::map<std::string, std::filesystem::path> tokens;
  bool quiet = false;  // no progress on stderr
  int64_t jobs = 1;    // runs at a time, one process each if > 1
  // Processes that share the runs, each with `jobs` at a time.
  int64_t processes_at_work = 1;
  // Threads per run, unless its settings give them; 0: the cores / jobs.
  int64_t threads = 0;
  // Ranks that train a run together: threads of its process...
  int ranks = 1;
  // ...or processes, of which this one is rank 0; then `jobs` is 1.
  GridRanks* processes = nullptr;
  // How data is exchanged between ranks (rank_devices.h).
  trainer::ExchangeChoice exchange = trainer::ExchangeChoice::kAuto;
};

// The ranks of each run: processes, or threads of this one.
int NumRanks(const GridRunOptions& options);

// Prepares the corpora, then trains the selected runs that are not finished:
// interrupted runs continue, failed ones are retried. Returns the outcome of
// all runs of the grid, whoever trained them. The same grid gives the same
// bits, for any number of threads, jobs and processes, interrupted or not.
//
// Other processes may work in the folder: this one takes runs that nobody
// holds, and finally waits for those that are held, to take them over if their
// process disappears before they are finished.
//
// Evaluations that a finished run lacks are measured on its checkpoint; if that
// is gone, a line says what is missing and how to get it, and the grid goes on.
// Answers to items other than those in options.task_files count as lacking; a
// line names the tasks of which only a part of the items is there.
//
// Ranks give the bits of one wherever they can (RanksInIdentity in trainer.h);
// where not, a line says so, and finished runs of another number are refused.
//
// A run that diverges (NumericsError) is recorded and does not keep others from
// running. Throws, besides what PrepareCorpus throws: ConfigError (balance
// groups that do not divide among the ranks, before anything is written),
// EnvironmentError (no device, disk full, a lock of a machine that cannot be
// asked), DataError (damaged files found in the folder, before anything is
// trained), StoppedError (stop_signal.h; state saved), and what
// RequireTaskItems and RequireTokens (grid_requirements.h) throw, before
// anything is written.
GridOutcome RunGrid(Grid grid, const GridRunOptions& options);

// The part of the other ranks if `options.processes` are several: trains
// whatever RunGrid trains on rank 0. Returns the code of GridRanks::Dismiss,
// which rank 0 calls after RunGrid. What RunGrid throws on rank 0 ends the
// others with the same code.
ExitCode FollowGrid(const Grid& grid, const GridRunOptions& options);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_RUN_GRID_H_
