// SPDX-License-Identifier: Apache-2.0
//
// grid_requirements.h - the runs that a command takes, and what they need
// before the first of them begins.
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
// have not ended in the folder.
std::vector<size_t> RecordedCorpora(const GridOutcome& found,
                                    const GridRunOptions& options);

// Whether a finished run lacks evaluations that its checkpoint may give. A
// recorded run has none: a checkpoint in its folder is of a training that did
// not end here.
bool CanBeMeasured(const RunOutcome& run);

// `grid`, whose plans know which items of tasks are in options.task_files.
Grid WithItemsHere(Grid grid, const GridRunOptions& options);

// Throws what trainer::ReadPlannedTasks throws for the tasks that `runs` will
// be asked: those that are not finished, and those that CanBeMeasured; of these
// also what trainer::RequireNoFewerItems throws. Returns a line for each of
// these tasks of which only a part is here.
std::vector<std::string> RequireTaskItems(const std::vector<RunOutcome>& runs,
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

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_GRID_REQUIREMENTS_H_
