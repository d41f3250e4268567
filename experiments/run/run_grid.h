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
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

struct GridRunOptions {
  std::filesystem::path folder;     // run_folder.h
  std::vector<size_t> selected;     // indices into Grid::runs
  std::optional<RunRecord> record;  // its runs count as finished
  // Folder of the items of the tasks in [evaluations] (task_items.h).
  std::filesystem::path task_files;
  // By data.corpus: PREFIX of token files that serve instead of those that the
  // cache has, or that would be prepared. They are part of no hash.
  std::map<std::string, std::filesystem::path> tokens;
  bool quiet = false;  // no progress on stderr
  int64_t jobs = 1;    // runs at a time, one process each if > 1
  // Processes that share the runs, each with `jobs` at a time.
  int64_t processes_at_work = 1;
  // Threads per run, unless its settings say; 0: the cores / jobs.
  int64_t threads = 0;
  // Ranks that train a run together: threads of its process...
  int ranks = 1;
  // ...or processes, of which this one is rank 0; then `jobs` is 1.
  GridRanks* processes = nullptr;
  // What carries between ranks (rank_devices.h).
  trainer::ExchangeChoice exchange = trainer::ExchangeChoice::kAuto;
};

// The tokens of a run that are here: those of options.tokens, or the cache's.
// Throws EnvironmentError that says how to get and prepare the corpus if they
// are not. Downloads and makes nothing.
trainer::PreparedCorpus FindTokens(const GridRun& run,
                                   const GridRunOptions& options);

// The selected ones among the runs that ReadGrid found, in their order; what
// the record has counts as finished. Adds to `notes`, if any, what
// TakeRecordedRuns returns.
std::vector<RunOutcome> SelectedRuns(GridOutcome outcome,
                                     const GridRunOptions& options,
                                     std::vector<std::string>* notes = nullptr);

// One of the selected runs, as an index into Grid::runs, for each corpus of
// which the folder says nothing yet and on which options.record has runs that
// the folder lacks.
std::vector<size_t> RecordedCorpora(const GridOutcome& found,
                                    const GridRunOptions& options);

// Throws what trainer::ReadPlannedTasks throws for the tasks that `runs` will
// be asked: those that are not finished, and those whose result lacks
// evaluations that its checkpoint can still give.
void RequireTaskItems(const std::vector<RunOutcome>& runs,
                      const GridRunOptions& options);

// For a grid whose file states the paper's scale, checked before anything is
// written. Throws EnvironmentError that names everything missing for the
// unfinished ones of `runs`: a device, unless runtime.device is "cpu" (only if
// `trains_here`); corpora that are not prepared, which no GPU shall wait for;
// items of tasks; and disk.
void RequirePaperScale(const Grid& grid, const std::vector<RunOutcome>& runs,
                       const GridRunOptions& options, bool trains_here);

// Bytes that the unfinished ones of `runs` will still write at their peak, if
// any `jobs` of them run at a time.
int64_t DiskBytesStillNeeded(const std::vector<RunOutcome>& runs, int64_t jobs);

// Throws EnvironmentError if the folder's disk cannot hold what `runs`, as many
// at a time as `options` says, will still write.
void RequireGridDiskSpace(const std::vector<RunOutcome>& runs,
                          const GridRunOptions& options);

// Throws ConfigError if options.tokens names a corpus that no selected run has,
// EnvironmentError or DataError if its files are missing, damaged, or of
// another corpus or vocabulary than the runs.
void RequireTokens(const Grid& grid, const GridRunOptions& options);

// Prepares the corpora, then trains the selected runs that are not finished:
// interrupted runs continue, failed ones are retried. Returns the outcome of
// all runs of the grid, whoever trained them. The same grid gives the same
// bits, for any number of threads, jobs and processes, interrupted or not.
//
// Other processes may work in the folder: this one takes runs that nobody
// holds, and in the end waits for those that are held, to take them over if
// their process disappears before they are finished.
//
// Evaluations that a finished run lacks are measured on its checkpoint; if that
// is gone, a line says what is missing and how to get it, and the grid goes on.
//
// Ranks give the bits of one wherever they can (RanksInIdentity in trainer.h);
// where not, a line says so, and finished runs of another number are refused.
//
// A run that diverges (NumericsError) is recorded and does not keep the others
// from running. Throws, besides what LoadGrid and PrepareCorpus throw:
// ConfigError (balance groups that do not divide among the
// ranks, before anything is written), EnvironmentError (no device, disk full, a
// lock of a machine that cannot be asked), DataError (damaged files found in
// the folder, before anything is trained), StoppedError (stop_signal.h;
// state saved), and what RequireTaskItems and RequireTokens throw, before
// anything is written.
GridOutcome RunGrid(const Grid& grid, const GridRunOptions& options);

// The part of the other ranks, where `options.processes` are several: trains
// with rank 0 whatever RunGrid trains there. Returns the code of
// GridRanks::Dismiss, which rank 0 calls after RunGrid. What RunGrid throws
// there ends the others with the same code.
ExitCode FollowGrid(const Grid& grid, const GridRunOptions& options);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_RUN_GRID_H_
