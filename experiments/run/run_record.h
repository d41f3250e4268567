// SPDX-License-Identifier: Apache-2.0
//
// run_record.h - finished runs of a grid in one small file that is kept with
// the sources: all numbers except the parameters, with thinned curves. It
// replaces the folders of the runs in reports, claims and `grid run --from`.
#ifndef SOFTMOE_EXPERIMENTS_RUN_RUN_RECORD_H_
#define SOFTMOE_EXPERIMENTS_RUN_RUN_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/grids/grid_file.h"
#include "experiments/run/run_outcome.h"
#include "golden/verdict/recorded_results.h"
#include "trainer/results/run_result.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {

// The maximum number of points of a curve.
inline constexpr size_t kRecordedPoints = 150;

struct PlannedRun {
  std::string id;   // "gcide/sparse-1/seed1234"
  std::string key;  // RunIdentityKey: "CORPUS/CONFIGHASH"
};

struct RecordedRun {
  std::string id, key;          // as planned
  trainer::RunResult result;    // steps: ThinnedSteps of the run
  std::string training_sha256;  // TrainingDigest of the whole run
};

struct RunRecord {
  std::filesystem::path path;
  // Hash() of MiniatureClaims, or of RegimeDefinitions for `regime`, from when
  // the first run was recorded; never renewed.
  std::string margins_sha256;
  // The planned runs of all grids that were recorded here, each once.
  std::vector<PlannedRun> planned;
  std::vector<RecordedRun> runs;  // by id
  // Keys of planned runs that diverged, which left no result.
  std::set<std::string> diverged;
  // The runs' corpora, keyed by CorpusName.
  std::map<std::string, trainer::PreparedCorpus> corpora;
  // The unmodified output of //:bench at the mini grid's size; "": none.
  std::string bench;
  // The runs' summary for //:golden, which SummarizeRecord makes from the runs;
  // not written without documents, and never read here.
  golden::RecordedResults results;

  const RecordedRun* Find(const std::string& key) const;  // nullptr: not there
  // Ids of the planned runs that have not ended: neither finished nor diverged.
  std::vector<std::string> Missing() const;
};

// Returns at most kRecordedPoints of `steps`, including the last: all of them,
// or the first ten, where the loss falls fastest, plus 140 spread evenly such
// that each twentieth of training ends at one.
std::vector<trainer::StepRecord> ThinnedSteps(
    const std::vector<trainer::StepRecord>& steps);

// Throws DataError if the record holds a run twice, or a row with different
// settings, or calls a run diverged that is finished or not planned. Throws
// Error with ExitCode::kMistrusted if two runs with different seeds have the
// same bits.
void CheckRuns(const RunRecord& record);

// Throws EnvironmentError if the file cannot be written, which leaves the old
// one intact, and what CheckRuns throws.
void WriteRunRecord(const RunRecord& record);

// Throws EnvironmentError if the file is missing, DataError with the remedy if
// it is damaged, and what CheckRuns throws, with the remedy.
RunRecord ReadRunRecord(const std::filesystem::path& path);

// Like ReadRunRecord, but returns an empty record if there is no file.
RunRecord OpenRunRecord(const std::filesystem::path& path);

// The number of new runs, and of old ones that gained evaluations.
struct RecordChange {
  size_t added = 0, completed = 0;
};

// Throws DataError if the record has runs, but none of a row of `grid` or of
// `judged`, as which it will be summarized, or if only one of it and `grid` is
// of the experiment `regime`.
void RequireRunsOf(const Grid& grid, const Grid& judged,
                   const RunRecord& record);

// Adds the finished runs of `outcome` that the record lacks, and notes which of
// the others diverged. Existing runs are neither dropped nor replaced; they
// only gain missing evaluations, from a run that has all of theirs. Throws
// DataError if the record has other margins or tokens; the same run with other
// bits, in training or in an evaluation that both have, or with other items of
// a task; another run with the same id, or a row with other settings; if only
// one of the two is of the experiment `regime`, or a run of that experiment is
// not planned in golden/paper/regime.toml; and what CheckRuns throws.
RecordChange AddFinishedRuns(const GridOutcome& outcome, RunRecord& record);

// Adds the output of //:bench (bench_samples.h); messages call it `place`.
// Throws DataError if the text is invalid, or if the record has other output:
// nobody may choose between two measurements.
void AddBenchmark(const std::string& text, const std::string& place,
                  RunRecord& record);

// Returns a few lines: "PATH: 12 of 76 planned runs: PARTIAL", "missing: ...".
std::string DescribeRecord(const RunRecord& record);

// Returns a line with the runs in rows of `judged`, the grid that the record is
// summarized for, that have other seeds or settings than the grid; "" if none.
std::string DescribeUnjudged(const Grid& judged, const RunRecord& record);

// Whether `grid` is the experiment `regime` with the mini grid's sizes and
// nothing set but [runtime]. Only then are its runs judged.
bool IsRegime(const Grid& grid);

// Whether any planned run belongs to a soft row of that experiment.
bool IsRegime(const RunRecord& record);

// Throws DataError if the record's margins are neither this program's nor in
// their history.
void RequireKnownMargins(const RunRecord& record);

// Counts runs of `outcome` that have not ended as finished if the record has
// them with the same configuration and tokens; for corpora that `outcome` does
// not know, the record's tokens are assumed. On the same conditions, waiting
// runs that diverged when they were recorded count as failed. Returns what to
// print for the user: how many, their versions and instruction sets, and what
// was left out. Throws DataError if both are of the experiment `regime` and a
// run of the record has other settings than in `outcome`.
std::vector<std::string> TakeRecordedRuns(const RunRecord& record,
                                          GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_RUN_RECORD_H_
