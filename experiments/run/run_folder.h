// SPDX-License-Identifier: Apache-2.0
//
// run_folder.h - where the runs of a grid are stored, and how to read their
// folders.
//
//   runs/GRID/                                 or --out; SCALE for experiments
//     CORPUS-ROW-seedSEED-CONFIGHASH/          one run
//       checkpoint.h5 metrics.jsonl result.h5  of the trainer
//       problem.txt                            why it failed, if it did
//     corpus-CORPUS-KEY.json                   what the runs were trained on
//     EXPERIMENT/                              its report; main has its above
//     report-HASH/, EXPERIMENT/report-HASH/    of other --seeds, or --set
#ifndef SOFTMOE_EXPERIMENTS_RUN_RUN_FOLDER_H_
#define SOFTMOE_EXPERIMENTS_RUN_RUN_FOLDER_H_

#include <filesystem>
#include <string>

#include "experiments/grids/grid_file.h"
#include "experiments/run/run_outcome.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

inline constexpr char kProblemName[] = "problem.txt";

// "foldoc-sparse-1-seed1234-0123456789abcdef"; the same in every experiment
// that has the run.
std::string RunFolderName(const GridRun& run);

// `out` as the user typed it, or runs/GRID, relative to the user's working
// directory.
std::filesystem::path GridFolder(const Grid& grid, const std::string& out);

// The folder, inside a grid's folder, for its report; for seeds other than the
// file's, or other settings, a folder that no other report replaces.
std::filesystem::path ReportFolder(const Grid& grid,
                                   const std::filesystem::path& grid_folder);

// Returns the state of `run` on disk; reads its result, which must have the
// run's configuration. Throws a DataError that names a damaged or foreign file
// and the remedy.
RunOutcome ReadRun(const GridRun& run,
                   const std::filesystem::path& grid_folder);

// All runs and corpora of a grid. With `check_checkpoints`, the checkpoints of
// runs that are not finished are opened as well. Throws DataError naming all
// damaged files.
GridOutcome ReadGrid(const Grid& grid, const std::filesystem::path& grid_folder,
                     bool check_checkpoints);

// Throws ConfigError if finished runs on one corpus were trained on different
// token files, or on files other than outcome.corpora says: their means would
// mix two texts.
void RequireSameTokens(const GridOutcome& outcome);

// Records in a run's folder that it failed, or deletes that record.
void RecordProblem(const std::filesystem::path& run_folder,
                   const std::string& problem);
void ForgetProblem(const std::filesystem::path& run_folder);

// "corpus-foldoc-01234567": CORPUS and KEY, the same for all runs that train on
// the same tokens.
std::string CorpusName(const GridRun& run);

// The PREFIX of corpus-CORPUS-KEY.json.
std::filesystem::path CorpusPrefix(const GridRun& run,
                                   const std::filesystem::path& grid_folder);

// Whether `corpus`, of a GridOutcome, is the one that the run trains on;
// another one may have the same text.
bool IsCorpusOf(const GridRun& run, const trainer::PreparedCorpus& corpus);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_RUN_FOLDER_H_
