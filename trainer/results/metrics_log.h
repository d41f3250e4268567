// SPDX-License-Identifier: Apache-2.0
//
// metrics_log.h - metrics.jsonl, one JSON object per line:
//
//   {"kind":"run","version":2,"config_hash":...,...}    the first line
//   {"kind":"step","step":1,"loss":...,...}             VisitStepMetrics
//   {"kind":"validation","step":...,"temperature":...}  VisitEvaluationMetrics
//
// Names and units: METRICS.md. Doubles are written so that they read back as
// the same bits.
#ifndef SOFTMOE_TRAINER_RESULTS_METRICS_LOG_H_
#define SOFTMOE_TRAINER_RESULTS_METRICS_LOG_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/errors.h"
#include "core/files/json_lines.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/train_state.h"

namespace softmoe::trainer {

// The version of the names of the log's numbers.
inline constexpr int kMetricsLogVersion = 2;

// The file's name in the folder of the run.
inline constexpr char kMetricsName[] = "metrics.jsonl";

// Returns the number of step lines in the file; 0 if there is no file.
int64_t LoggedSteps(const std::filesystem::path& path);

// Throws ConfigError if the file is somebody else's, which a MetricsLog would
// replace. Whatever a power failure leaves of a log is a log.
void RequireReplaceableLog(const std::filesystem::path& path);

// Returns an error with `place` (FILE:LINE), the problem there, and how to get
// the log again.
DataError LogError(const std::string& place, const std::string& problem);

// Checks, line by line, that a log in the folder of a run belongs to that run:
// it begins with the run's configuration and has every step.
class LogCheck {
 public:
  explicit LogCheck(std::string config_hash);

  // Whether the line, which is at `place`, is that of a step. Throws DataError
  // if it does not belong there.
  bool Line(const nlohmann::ordered_json& line, const std::string& place);

  int64_t steps() const { return steps_; }  // so far

 private:
  const std::string config_hash_;
  bool begun_ = false;
  int64_t steps_ = 0;
};

class MetricsLog {
 public:
  // Replaces the file with what `state` knows. On resume, lines of steps after
  // the checkpoint are dropped, and lost or altered lines are restored.
  MetricsLog(const std::filesystem::path& path, const RunIdentity& identity,
             const TrainState& state);

  // Appends one line and flushes it. Throws EnvironmentError.
  void Add(const StepRecord& record);
  void Add(const EvaluationRecord& record);

  // Waits until every line is on the disk, since the log of a finished run is
  // never written again. Throws EnvironmentError.
  void Sync() { file_.Sync(); }

 private:
  JsonLinesWriter file_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_METRICS_LOG_H_
