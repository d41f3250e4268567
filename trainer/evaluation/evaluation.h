// SPDX-License-Identifier: Apache-2.0
//
// evaluation.h - measures a trained model again, from its checkpoint.
#ifndef SOFTMOE_TRAINER_EVALUATION_EVALUATION_H_
#define SOFTMOE_TRAINER_EVALUATION_EVALUATION_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "optimized/device.h"
#include "trainer/results/run_result.h"
#include "trainer/tasks/task_report.h"
#include "trainer/tasks/task_scores.h"

namespace softmoe::trainer {

struct EvaluationOptions {
  std::filesystem::path folder;  // of the run: holds checkpoint.h5
  // Prefix of the token files; empty: those of the run. Another text is
  // allowed, another vocabulary is not.
  std::filesystem::path tokens;
  std::optional<double> tau;         // empty: as trained
  double temperature = 1.0;          // > 0
  std::optional<int64_t> sequences;  // of the held-out split; 0: all of them;
                                     // empty: as configured
  std::filesystem::path trace;  // of these sequences (routing_trace.h); empty:
                                // none
  RuntimeConfig runtime;
};

// Which model is measured, and how.
struct MeasuredModel {
  Config config;
  std::string config_hash;
  int64_t step = 0;  // completed updates of the checkpoint
  double tau = 0;
  double temperature = 1;
  std::filesystem::path tokens;      // prefix of the token files
  optimized::DeviceIdentity device;  // where it was measured
};

struct EvaluationReport : MeasuredModel {
  bool other_tokens = false;  // not those on which the run was trained
  std::string data_sha256;
  double unigram_loss = 0;
  std::optional<double> val_bytes_per_token;  // as in RunResult
  Validation validation;
};

// Measures on the device that runtime.device names, whichever trained the
// model; a model in bf16 needs a CUDA device. Throws EnvironmentError if there
// is no checkpoint, token file or device, DataError if a file is damaged or the
// vocabulary differs, ConfigError for a model that the device does not compute,
// or for a tau or temperature that is out of range or that the router does not
// have, or if the trace would replace a file of another kind, DivergedError as
// Validate, StoppedError after a signal.
EvaluationReport EvaluateRun(const EvaluationOptions& options);

struct TaskReport : MeasuredModel {
  std::string tokenizer_sha256;
  std::vector<ScoredTask> tasks;
};

// Asks the model the items of `tasks`. Needs only the tokenizer, PREFIX.model,
// of the token files; ignores options.sequences and trace. Throws as
// EvaluateRun and ScoreTask; DataError if the run has no tokenizer, or not this
// one.
TaskReport EvaluateTasks(const EvaluationOptions& options,
                         std::vector<TaskItems> tasks);

// The report for people, and for WriteTaskReport.
std::string TaskText(const TaskReport& report);
AnsweringModel Answering(const TaskReport& report);

// The report for people; and as one JSON object. Both end with a newline.
std::string EvaluationText(const EvaluationReport& report);
std::string EvaluationJson(const EvaluationReport& report);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_EVALUATION_H_
