// SPDX-License-Identifier: Apache-2.0
//
// run_result.h - what a run reports: its steps, validations and final numbers.
#ifndef SOFTMOE_TRAINER_RESULTS_RUN_RESULT_H_
#define SOFTMOE_TRAINER_RESULTS_RUN_RESULT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::trainer {

// Units, definitions and names in files of the metrics: metrics.h.

// One step as it is logged (metrics.jsonl has the same numbers).
struct StepRecord {
  int64_t step = 0;  // completed updates
  double loss = 0;   // language-model loss only
  double load_balance_loss = 0;
  double z_loss = 0;
  double active_experts = 0;
  double zero_active_fraction = 0;
  std::vector<double> layer_active_experts;          // [num_layers]
  std::vector<double> allocation;                    // [num_layers] k_l
  std::vector<double> layer_relative_load_variance;  // [num_layers]
  double temperature = 0, gradient_norm = 0, learning_rate = 0;
  double seconds = 0, tokens_per_second = 0;
};

struct Validation {
  double loss = 0;
  int64_t num_tokens = 0;
  double active_experts = 0;  // noise off; infer-AE if T = 1
  double zero_active_fraction = 0;
  std::vector<double> layer_active_experts;             // [num_layers]
  std::vector<std::vector<int64_t>> active_histogram;   // [layer][count]
  std::vector<std::vector<int64_t>> tokens_per_expert;  // [layer][expert]
  double relative_load_variance = 0;
  double load_cv = 0;
  double load_var_over_mean = 0;
};

// How a choice is weighed: by its log-likelihood; by that per code point (the
// harness's acc_norm) or per byte, both without the space before the choice; or
// by that per token, as in-house scorers do.
enum class TaskMeasure { kAcc, kAccNorm, kAccBytes, kAccTokens };
inline constexpr int kNumTaskMeasures = 4;
inline constexpr std::array<const char*, kNumTaskMeasures> kTaskMeasureNames = {
    "acc", "acc_norm", "acc_bytes", "acc_tokens"};

// The answers to a task's items under one measure.
struct MeasuredAnswers {
  int64_t correct = 0;
  double accuracy = 0;        // correct over items
  double standard_error = 0;  // of it, from the sample's variance (n - 1)
};

// Zero-shot answers to a task, or to a part of one (TaskAccuracy in
// task_scores.h), with the final parameters, T = 1, noise off.
struct TaskResult {
  std::string name;
  std::string sha256;                     // of the files of its items
  std::vector<MeasuredAnswers> measures;  // by TaskMeasure
  // [items], at least two: bit m tells whether the answer by the m-th measure
  // is right, so that two models can be compared item by item.
  std::vector<uint8_t> right;
};

// The held-out split with a multiple of the tau of training; everything else is
// as in RunResult::final_validation.
struct InferenceTau {
  double factor = 1;  // times the tau of training
  double tau = 0;
  // active_histogram is empty unless the plan asked for it.
  Validation validation;
  std::vector<TaskResult> tasks = {};  // with this tau
};

// How one layer uses its experts: final parameters, held-out split, tau of
// training, T = 1, noise off. Exact definitions: SPEC.md 5.2.
struct RouterHealth {
  double load_entropy = 0;           // nats, in [0, ln num_experts]
  double relative_load_entropy = 0;  // as a share of ln num_experts
  int64_t dead_experts = 0;          // no token has them active
  double at_cap_fraction = 0;        // tokens; the sparse router: 1
  double zero_active_fraction = 0;   // tokens; before the fallback
  // The part of k_l that cutoff and cap remove, in experts per token. Empty for
  // the sparse router, which has no cutoff.
  std::optional<double> truncated_mass;
};

// The evaluations that a plan asked for.
struct FinalEvaluations {
  std::string code_version;  // of the program that measured
  // Ascending by factor; empty for the sparse router, which has no tau.
  std::vector<InferenceTau> inference_tau;
  std::vector<RouterHealth> router_health;  // [num_layers], or not measured
  std::vector<TaskResult> tasks = {};       // with the tau of training
};

struct RunResult {
  RunIdentity identity;  // with the configuration as given
  Config config;         // resolved; tau filled in if it was calibrated
  double tau = 0;
  bool tau_calibrated = false;
  int64_t parameters = 0;
  std::vector<StepRecord> steps;
  Validation at_schedule_temperature;  // T(m) of the last step
  Validation final_validation;         // T = 1, noise off: the table cells
  double unigram_loss = 0;
  // nullopt if the tokens do not tell, or if the file is older than these.
  std::optional<double> train_bytes_per_token, val_bytes_per_token;
  std::optional<double> val_loss_per_byte;
  double train_ae = 0;             // mean of active_experts over all steps
  std::vector<double> allocation;  // final k_l
  int64_t max_active = 0;          // largest cap of a layer over the run
  // Largest active count, in steps and in validations at T = 1.
  int64_t most_active_in_a_token = 0;
  double seconds = 0;
  bool resumed = false;
  int64_t devices = 0;  // GPUs in use at the end; 0: the CPU, or not recorded
  std::string code_version;  // of the programs that trained it, in order
  std::optional<FinalEvaluations> final_evaluations;  // if a plan asked
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_RUN_RESULT_H_
