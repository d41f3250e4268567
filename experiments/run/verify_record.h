// SPDX-License-Identifier: Apache-2.0
//
// verify_record.h - trains a recorded run again and compares it with what was
// recorded.
#ifndef SOFTMOE_EXPERIMENTS_RUN_VERIFY_RECORD_H_
#define SOFTMOE_EXPERIMENTS_RUN_VERIFY_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/config/config.h"
#include "core/errors.h"
#include "experiments/run/run_record.h"
#include "trainer/results/run_result.h"
#include "trainer/run/trainer.h"

namespace softmoe::experiments {

// How the losses of one corpus scatter over seeds: sum over its rows of squared
// deviations from the row's mean, over their degrees of freedom.
struct SeedDeviation {
  double deviation = 0;  // nat/token
  int64_t freedom = 0;
};
// Of final validation losses. Rows are the runs of the record that differ from
// `run` and from each other in nothing but the seed; all rows of its corpus
// with two seeds or more.
SeedDeviation PooledDeviation(const RunRecord& record, const RecordedRun& run);

struct RunVerdict {
  ExitCode code = ExitCode::kDone;
  std::string text;
};

// What `again`, trained now, says of the recorded `run`: kDone if all bits are
// the same. kFailed if not, on the same instruction set; but where `changed_by`
// names the commit that changed the bits on purpose, kDone within 3 pooled
// deviations of the final validation loss, and kInconclusive if the record
// cannot tell them. kNotComparable on another instruction set.
RunVerdict JudgeAgain(const RunRecord& record, const RecordedRun& run,
                      const trainer::RunResult& again,
                      const std::string& changed_by);

// The run of this id. Throws ConfigError with a suggestion if there is none.
const RecordedRun& FindRecorded(const RunRecord& record, const std::string& id);

// Throws ConfigError unless the text of CHANGELOG.md names this commit, by 7
// hex digits or more.
void RequireInChangelog(const std::string& commit, const std::string& text);

struct VerifyOptions {
  std::filesystem::path folder;  // of the run, which is deleted at the end
  RuntimeConfig runtime;         // isa: by default that of the recorded run
  bool quiet = false;
  std::string changed_by;  // JudgeAgain
};

// Trains it again, or goes on where it was stopped, and judges. Throws
// DataError if its corpus has other tokens here, and as TrainRun.
RunVerdict VerifyRecordedRun(const RunRecord& record, const RecordedRun& run,
                             const VerifyOptions& options);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_VERIFY_RECORD_H_
