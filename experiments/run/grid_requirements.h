// SPDX-License-Identifier: Apache-2.0
//
// grid_requirements.h - the runs that a command selects, and what must be
// present before the first of them begins.
#ifndef SOFTMOE_EXPERIMENTS_RUN_GRID_REQUIREMENTS_H_
#define SOFTMOE_EXPERIMENTS_RUN_GRID_REQUIREMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/run/run_grid.h"
#include "experiments/run/run_outcome.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

// Returns a run's tokens on this machine: those of options.tokens, or those in
// the cache. Throws an EnvironmentError that says how to get and prepare the
// corpus if there are none. Downloads and prepares nothing.
trainer::PreparedCorpus FindTokens(const GridRun& run,
                                   const GridRunOptions& options);

// Returns the selected ones of the runs that ReadGrid found, in their order; a
// run that the record has counts as finished. Adds to `notes`, unless null,
// what TakeRecordedRuns returns.
std::vector<RunOutcome> SelectedRuns(GridOutcome outcome,
                                     const GridRunOptions& options,
                                     std::vector<std::string>* notes = nullptr);

// Returns one selected run, as an index into Grid::runs, for each corpus that
// has no record in the folder yet and on which options.record has runs that
// have not ended in the folder.
std::vector<size_t> RecordedCorpora(const GridOutcome& found,
                                    const GridRunOptions& options);

// Whether a finished run lacks evaluations that its checkpoint may give. A
// recorded run has no checkpoint: one in its folder belongs to a training that
// did not end here.
bool CanBeMeasured(const RunOutcome& run);

// Returns `grid` with plans that know the task items in options.task_files.
Grid WithItemsHere(Grid grid, const GridRunOptions& options);

// Throws what trainer::ReadPlannedTasks throws for the tasks of those `runs`
// that are unfinished or that CanBeMeasured; for the latter also what
// trainer::RequireNoFewerItems throws. Returns a line for each task of which
// only a part of the items is here.
std::vector<std::string> RequireTaskItems(const std::vector<RunOutcome>& runs,
                                          const GridRunOptions& options);

// Checks a grid whose file states the paper's scale, before anything is
// written. Throws an EnvironmentError that names everything that the unfinished
// ones of `runs` lack: a device, unless runtime.device is "cpu" (only if
// `trains_here`); prepared corpora, since no GPU shall wait for them; items of
// tasks; and disk.
void RequirePaperScale(const Grid& grid, const std::vector<RunOutcome>& runs,
                       const GridRunOptions& options, bool trains_here);

// Returns the bytes that the unfinished ones of `runs` will still write, at the
// peak, if any `jobs` of them run at a time.
int64_t DiskBytesStillNeeded(const std::vector<RunOutcome>& runs, int64_t jobs);

// Throws EnvironmentError if the folder's disk cannot hold what `runs` will
// still write, as many at a time as `options` says.
void RequireGridDiskSpace(const std::vector<RunOutcome>& runs,
                          const GridRunOptions& options);

// Throws ConfigError if options.tokens names a corpus that no selected run has,
// and EnvironmentError or DataError if its files are missing, damaged, or of
// another corpus or vocabulary than that of the runs.
void RequireTokens(const Grid& grid, const GridRunOptions& options);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_REQUIREMENTS_H_
