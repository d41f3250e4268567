// SPDX-License-Identifier: Apache-2.0
//
// verify_record.h - retrains a recorded run and compares it with the record.
#ifndef SOFTMOE_EXPERIMENTS_RUN_VERIFY_RECORD_H_
#define SOFTMOE_EXPERIMENTS_RUN_VERIFY_RECORD_H_

#include <filesystem>
#include <optional>
#include <string>

#include "core/config/config.h"
#include "core/errors.h"
#include "experiments/run/run_record.h"
#include "golden/verdict/equivalence.h"
#include "trainer/results/run_result.h"
#include "trainer/run/trainer.h"

namespace softmoe::experiments {

// Returns the deviation of final validation losses over seeds, in nat/token,
// pooled over all rows of the corpus of `run` with two seeds or more. A row
// consists of recorded runs that differ only in the seed.
golden::PooledDeviation LossDeviation(const RunRecord& record,
                                      const RecordedRun& run);

struct RunVerdict {
  ExitCode code = ExitCode::kDone;
  std::string text;
};

// Judges `again`, the retrained run, against the recorded `run`. All bits
// equal: kDone. The recorded hash, but other numbers than the record holds:
// kFailed. On another instruction set or device: kNotComparable. Otherwise
// kFailed, unless `changed_by` names the commit that changed the bits on
// purpose: then kDone within 3 pooled deviations of the final validation loss,
// and kInconclusive if the record does not determine the deviation.
RunVerdict JudgeAgain(const RunRecord& record, const RecordedRun& run,
                      const trainer::RunResult& again,
                      const std::string& changed_by);

// The run with this id. Throws ConfigError with a suggestion if there is none.
const RecordedRun& FindRecorded(const RunRecord& record, const std::string& id);

// Throws ConfigError unless the text of CHANGELOG.md names this commit, by 7
// hex digits or more.
void RequireInChangelog(const std::string& commit, const std::string& text);

struct VerifyOptions {
  std::filesystem::path folder;  // of the run; deleted at the end
  RuntimeConfig runtime;  // isa, device: those of the recorded run by default
  bool quiet = false;
  std::string changed_by;  // passed to JudgeAgain
  // Folder of the items of the tasks that the recorded run was asked.
  std::filesystem::path task_files;
};

// Retrains the run, or continues where this version was stopped, and judges it.
// Throws DataError, before anything else, if its ranks are no number or
// options.task_files has other items than it was asked, or later if its corpus
// has other tokens here; and what TrainRun throws.
RunVerdict VerifyRecordedRun(const RunRecord& record, const RecordedRun& run,
                             const VerifyOptions& options);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_VERIFY_RECORD_H_
