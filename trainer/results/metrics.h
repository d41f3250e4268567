// SPDX-License-Identifier: Apache-2.0
//
// metrics.h - everything that is measured, defined once: its name in files, its
// title for people, unit, definition and format, and which member of which
// record holds it. Results, checkpoints, logs, CSV, tables and reports are
// loops over these lists; METRICS.md prints them.
//
// A new metric needs a constant below, a member, and a line in a Visit
// function; without the line this does not compile, except for a TrainState.
#ifndef SOFTMOE_TRAINER_RESULTS_METRICS_H_
#define SOFTMOE_TRAINER_RESULTS_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/results/run_result.h"
#include "trainer/results/train_state.h"

namespace softmoe::trainer {

// The shape of a metric in each record: a number or a list.
enum class MetricShape {
  kNumber,
  kLayers,            // [num_layers]
  kLayersAndCounts,   // [num_layers, num_experts + 1]
  kLayersAndExperts,  // [num_layers, num_experts]
  kMeasures,          // [acc, acc_norm, acc_bytes, acc_tokens]
};

struct Metric {
  const char* name;        // in HDF5, JSON and CSV
  const char* title;       // heads a column, precedes a number in a log
  const char* unit;        // of the number as it is stored
  const char* definition;  // what is measured over what; no full stop
  // People see the stored number times `scale`, printed by `format`, with
  // `shown_unit` after it.
  const char* format = ".4f";
  double scale = 1;
  const char* shown_unit = "";
  MetricShape shape = MetricShape::kNumber;
  bool clock = false;  // differs between runs that are otherwise equal
  // The metric came later: older HDF5 files lack it, and the member then keeps
  // its default, which must mean that. The digest of a run (run_digest.h)
  // leaves it out.
  bool later = false;
};

// Returns `value`, stored in metric.unit, as shown to readers: "33.4".
std::string ShownNumber(const Metric& metric, double value);
// Returns the same with the unit in which it is shown: "33.4%", "2.26".
std::string Shown(const Metric& metric, double value);
// Returns the same after its title, for lines of a log: "zero AE 33.4%".
std::string Titled(const Metric& metric, double value);
// Returns "val loss              3.8037 nat/token\n", for reports of one run.
std::string ReportLine(const Metric& metric, double value);
// Returns the sizes of a list; empty for one number.
std::vector<int64_t> SizesOf(MetricShape shape, const ModelConfig& model);

// The names of the measured quantities, on any text and at any step.
namespace metrics {

inline constexpr Metric kLoss = {
    .name = "loss",
    .title = "loss",
    .unit = "nat/token",
    .definition = "mean cross-entropy of the next token, no auxiliary losses"};
inline constexpr Metric kLoadBalanceLoss = {
    .name = "load_balance_loss",
    .title = "balance",
    .unit = "nat/token",
    .definition =
        "load-balancing loss times aux_loss_coeff, summed over "
        "layers, mean over balance groups",
    .format = ".3g"};
inline constexpr Metric kZLoss = {
    .name = "z_loss",
    .title = "z",
    .unit = "nat/token",
    .definition =
        "z-loss times z_loss_coeff, summed over layers, mean over "
        "balance groups",
    .format = ".3g"};
inline constexpr Metric kActiveExperts = {
    .name = "active_experts",
    .title = "AE",
    .unit = "experts/token/layer",
    .definition =
        "mean number of active experts over tokens and layers, after "
        "cutoff, cap and fallback",
    .format = ".2f"};
inline constexpr Metric kZeroActiveFraction = {
    .name = "zero_active_fraction",
    .title = "zero AE",
    .unit = "1",
    .definition =
        "share of (token, layer) pairs none of whose weights passes the "
        "cutoff: they have no expert, or the one that fallback = \"top1\" "
        "gives",
    .format = ".1f",
    .scale = 100,
    .shown_unit = "%"};
inline constexpr Metric kLayerActiveExperts = {
    .name = "layer_active_experts",
    .title = "AE by layer",
    .unit = "experts/token",
    .definition = "active_experts of each layer",
    .format = ".2f",
    .shape = MetricShape::kLayers};
inline constexpr Metric kAllocation = {
    .name = "allocation",
    .title = "k_l",
    .unit = "experts/token",
    .definition = "mean number of active experts that each layer is allotted",
    .format = ".2f",
    .shape = MetricShape::kLayers};
inline constexpr Metric kTemperature = {
    .name = "temperature",
    .title = "T",
    .unit = "score",
    .definition = "temperature of the soft routers by the schedule",
    .format = ".2f"};
inline constexpr Metric kGradientNorm = {
    .name = "gradient_norm",
    .title = "gnorm",
    .unit = "nat/token/parameter",
    .definition = "Euclidean norm of the whole gradient before clipping",
    .format = ".2f"};
inline constexpr Metric kLearningRate = {.name = "learning_rate",
                                         .title = "lr",
                                         .unit = "1",
                                         .definition = "learning rate of AdamW",
                                         .format = ".1e"};
inline constexpr Metric kStepSeconds = {
    .name = "seconds",
    .title = "time",
    .unit = "s",
    .definition = "wall time of the step, without validation and checkpoints",
    .format = ".0f",
    .scale = 1e3,
    .shown_unit = " ms",
    .clock = true};
inline constexpr Metric kTokensPerSecond = {
    .name = "tokens_per_second",
    .title = "speed",
    .unit = "token/s",
    .definition = "tokens of the step over its seconds",
    .format = ".0f",
    .shown_unit = " tok/s",
    .clock = true};

// How unevenly the tokens of a layer are spread over its experts: three
// readings of the paper's "load variance".
inline constexpr Metric kRelativeLoadVariance = {
    .name = "relative_load_variance",
    .title = "load variance",
    .unit = "1",
    .definition =
        "Var_i(n_i) / Mean_i(n_i)^2 of the tokens n_i with expert i "
        "active, population variance, mean over layers"};
inline constexpr Metric kLoadCv = {
    .name = "load_cv",
    .title = "load sd/mean",
    .unit = "1",
    .definition = "sd_i(n_i) / Mean_i(n_i), mean over layers"};
inline constexpr Metric kLoadVarOverMean = {
    .name = "load_var_over_mean",
    .title = "load var/mean",
    .unit = "token",
    .definition = "Var_i(n_i) / Mean_i(n_i), mean over layers",
    .format = ".2f"};
inline constexpr Metric kLayerRelativeLoadVariance = {
    .name = "layer_relative_load_variance",
    .title = "load variance by layer",
    .unit = "1",
    .definition = "relative_load_variance of each layer",
    .shape = MetricShape::kLayers};
inline constexpr Metric kActiveHistogram = {
    .name = "active_histogram",
    .title = "tokens by active experts",
    .unit = "token",
    .definition = "tokens with 0, 1, ..., num_experts active experts, by layer",
    .shape = MetricShape::kLayersAndCounts};
inline constexpr Metric kTokensPerExpert = {
    .name = "tokens_per_expert",
    .title = "tokens by expert",
    .unit = "token",
    .definition = "tokens with each expert active, by layer",
    .shape = MetricShape::kLayersAndExperts};
inline constexpr Metric kNumTokens = {
    .name = "num_tokens",
    .title = "held-out tokens",
    .unit = "token",
    .definition = "targets that the loss is the mean of",
    .format = ".0f"};

// Values at T(m), beside the values at T = 1 in the same record.
inline constexpr Metric kScheduleLoss = {
    .name = "schedule_loss",
    .title = "loss at T(m)",
    .unit = "nat/token",
    .definition = "val_loss at the temperature of the schedule"};
inline constexpr Metric kScheduleActiveExperts = {
    .name = "schedule_active_experts",
    .title = "AE at T(m)",
    .unit = "experts/token/layer",
    .definition = "held-out active_experts at the temperature of the schedule",
    .format = ".2f"};

// How one layer uses its experts: SPEC.md 5.2.
inline constexpr Metric kLoadEntropy = {
    .name = "load_entropy",
    .title = "load entropy",
    .unit = "nat",
    .definition =
        "entropy of the experts' shares of the load, in [0, ln "
        "num_experts]",
    .shape = MetricShape::kLayers};
inline constexpr Metric kRelativeLoadEntropy = {
    .name = "relative_load_entropy",
    .title = "entropy",
    .unit = "1",
    .definition = "load_entropy over ln num_experts: 1 is even",
    .shape = MetricShape::kLayers};
inline constexpr Metric kDeadExperts = {
    .name = "dead_experts",
    .title = "dead",
    .unit = "experts",
    .definition = "experts active for no token",
    .format = ".4g",
    .shape = MetricShape::kLayers};
inline constexpr Metric kAtCapFraction = {
    .name = "at_cap_fraction",
    .title = "at cap",
    .unit = "1",
    .definition =
        "share of tokens with at least as many weights above the cutoff as the "
        "cap allows; the sparse router: 1",
    .format = ".1f",
    .scale = 100,
    .shown_unit = "%",
    .shape = MetricShape::kLayers};
inline constexpr Metric kLayerZeroActiveFraction = {
    .name = "zero_active_fraction",
    .title = kZeroActiveFraction.title,
    .unit = kZeroActiveFraction.unit,
    .definition = kZeroActiveFraction.definition,
    .format = kZeroActiveFraction.format,
    .scale = kZeroActiveFraction.scale,
    .shown_unit = kZeroActiveFraction.shown_unit,
    .shape = MetricShape::kLayers};
inline constexpr Metric kTruncatedMass = {
    .name = "truncated_mass",
    .title = "cut",
    .unit = "experts/token",
    .definition = "part of k_l that cutoff and cap remove; none in sparse rows",
    .format = ".3f",
    .shape = MetricShape::kLayers};

// Zero-shot answers, by measure.
inline constexpr Metric kCorrect = {
    .name = "correct",
    .title = "right",
    .unit = "items",
    .definition = "items of the task that are answered correctly",
    .format = ".0f",
    .shape = MetricShape::kMeasures};
inline constexpr Metric kAccuracy = {
    .name = "accuracy",
    .title = "accuracy",
    .unit = "1",
    .definition = "correct over the items of the task",
    .format = ".2f",
    .scale = 100,
    .shown_unit = "%",
    .shape = MetricShape::kMeasures};
inline constexpr Metric kStandardError = {
    .name = "standard_error",
    .title = "error",
    .unit = "1",
    .definition = "of accuracy, from the variance over the items (n - 1)",
    .format = ".2f",
    .scale = 100,
    .shown_unit = "%",
    .shape = MetricShape::kMeasures};

// For a validation with another tau.
inline constexpr Metric kTauFactor = {.name = "factor",
                                      .title = "factor",
                                      .unit = "1",
                                      .definition = "tau over that of training",
                                      .format = "g"};

// For a whole run.
inline constexpr Metric kTau = {
    .name = "tau",
    .title = "tau",
    .unit = "1",
    .definition =
        "cutoff in units of k_l/num_experts, as given or calibrated; "
        "0 for the sparse router",
    .format = ".3f"};
inline constexpr Metric kParameters = {.name = "parameters",
                                       .title = "parameters",
                                       .unit = "parameters",
                                       .definition = "all that is trained",
                                       .format = ".0f"};
inline constexpr Metric kActiveParameters = {
    .name = "active_parameters",
    .title = "active",
    .unit = "parameters",
    .definition =
        "parameters that a token uses on average, counted exactly, "
        "with the infer_ae of the row",
    .format = ".3f",
    .scale = 1e-6,
    .shown_unit = "M"};
inline constexpr Metric kMaxActive = {
    .name = "max_active",
    .title = "largest cap",
    .unit = "experts/token",
    .definition = "largest cap of any layer at any step",
    .format = ".0f"};
inline constexpr Metric kMostActiveInAToken = {
    .name = "most_active_in_a_token",
    .title = "most active",
    .unit = "experts/token",
    .definition =
        "largest number of active experts that any token had in any layer, in "
        "training steps and in validations at T = 1",
    .format = ".0f"};
inline constexpr Metric kRunSeconds = {
    .name = "seconds",
    .title = "time",
    .unit = "s",
    .definition =
        "wall time of all sessions, of each up to its last checkpoint or the "
        "result: without the evaluations after training",
    .format = ".1f",
    .shown_unit = " s",
    .clock = true};
inline constexpr Metric kUnigramLoss = {
    .name = "unigram_loss",
    .title = "unigram",
    .unit = "nat/token",
    .definition =
        "cross-entropy of the targets of val_loss under the frequencies "
        "(count + 1) / (tokens + vocab_size) of the training split"};
inline constexpr Metric kTrainBytesPerToken = {
    .name = "train_bytes_per_token",
    .title = "train bytes/token",
    .unit = "byte/token",
    .definition =
        "bytes of text for each token of the training split, ends of documents "
        "counted among the tokens; none where they do not tell",
    .format = ".3f",
    .later = true};
inline constexpr Metric kValBytesPerToken = {
    .name = "val_bytes_per_token",
    .title = "bytes/token",
    .unit = "byte/token",
    .definition = "the same of the targets of val_loss",
    .format = ".3f",
    .later = true};
inline constexpr Metric kValLossPerByte = {
    .name = "val_loss_per_byte",
    .title = "val loss/byte",
    .unit = "nat/byte",
    .definition =
        "val_loss over val_bytes_per_token, which compares models of two "
        "tokenizers",
    .later = true};
inline constexpr Metric kTrainAe = {
    .name = "train_ae",
    .title = "train AE",
    .unit = "experts/token/layer",
    .definition =
        "mean number of active experts over tokens, layers and all "
        "training steps",
    .format = ".2f"};
inline constexpr Metric kInferAe = {
    .name = "infer_ae",
    .title = "infer AE",
    .unit = "experts/token/layer",
    .definition =
        "mean number of active experts over tokens and layers of "
        "held-out text; final model, T = 1, noise off",
    .format = ".2f"};
inline constexpr Metric kValLoss = {
    .name = "val_loss",
    .title = "val loss",
    .unit = "nat/token",
    .definition =
        "mean cross-entropy of held-out text; final model, T = 1, "
        "noise off"};

}  // namespace metrics

// Calls visit(metric, member) for every number of a StepRecord except the step;
// member is a pointer to a double or to a vector<double> [num_layers].
template <typename Visitor>
constexpr void VisitStepMetrics(Visitor&& visit) {
  visit(metrics::kLoss, &StepRecord::loss);
  visit(metrics::kLoadBalanceLoss, &StepRecord::load_balance_loss);
  visit(metrics::kZLoss, &StepRecord::z_loss);
  visit(metrics::kActiveExperts, &StepRecord::active_experts);
  visit(metrics::kZeroActiveFraction, &StepRecord::zero_active_fraction);
  visit(metrics::kTemperature, &StepRecord::temperature);
  visit(metrics::kGradientNorm, &StepRecord::gradient_norm);
  visit(metrics::kLearningRate, &StepRecord::learning_rate);
  visit(metrics::kStepSeconds, &StepRecord::seconds);
  visit(metrics::kTokensPerSecond, &StepRecord::tokens_per_second);
  visit(metrics::kLayerActiveExperts, &StepRecord::layer_active_experts);
  visit(metrics::kAllocation, &StepRecord::allocation);
  visit(metrics::kLayerRelativeLoadVariance,
        &StepRecord::layer_relative_load_variance);
}

// Does the same for a Validation; member is a pointer to a double, an int64_t,
// a vector<double> [num_layers], or a vector<vector<int64_t>> [num_layers].
template <typename Visitor>
constexpr void VisitValidationMetrics(Visitor&& visit) {
  visit(metrics::kLoss, &Validation::loss);
  visit(metrics::kNumTokens, &Validation::num_tokens);
  visit(metrics::kActiveExperts, &Validation::active_experts);
  visit(metrics::kZeroActiveFraction, &Validation::zero_active_fraction);
  visit(metrics::kRelativeLoadVariance, &Validation::relative_load_variance);
  visit(metrics::kLoadCv, &Validation::load_cv);
  visit(metrics::kLoadVarOverMean, &Validation::load_var_over_mean);
  visit(metrics::kLayerActiveExperts, &Validation::layer_active_experts);
  visit(metrics::kActiveHistogram, &Validation::active_histogram);
  visit(metrics::kTokensPerExpert, &Validation::tokens_per_expert);
}

// Does the same for an EvaluationRecord; member is a pointer to a double.
template <typename Visitor>
constexpr void VisitEvaluationMetrics(Visitor&& visit) {
  visit(metrics::kTemperature, &EvaluationRecord::temperature);
  visit(metrics::kScheduleLoss, &EvaluationRecord::schedule_loss);
  visit(metrics::kScheduleActiveExperts,
        &EvaluationRecord::schedule_active_experts);
  visit(metrics::kLoss, &EvaluationRecord::loss);
  visit(metrics::kActiveExperts, &EvaluationRecord::active_experts);
  visit(metrics::kZeroActiveFraction, &EvaluationRecord::zero_active_fraction);
  visit(metrics::kRelativeLoadVariance,
        &EvaluationRecord::relative_load_variance);
}

// Does the same for what a run carries from step to step and into its result;
// Record is TrainState or RunResult, member a pointer to a double or int64_t.
template <typename Record, typename Visitor>
constexpr void VisitCarriedMetrics(Visitor&& visit) {
  visit(metrics::kTau, &Record::tau);
  visit(metrics::kMaxActive, &Record::max_active);
  visit(metrics::kMostActiveInAToken, &Record::most_active_in_a_token);
  visit(metrics::kRunSeconds, &Record::seconds);
}

// Does the same for a RunResult, apart from its steps and validations; member
// is a pointer to a double, an int64_t, an optional<double> or a vector<double>
// [num_layers].
template <typename Visitor>
constexpr void VisitRunMetrics(Visitor&& visit) {
  VisitCarriedMetrics<RunResult>(visit);
  visit(metrics::kParameters, &RunResult::parameters);
  visit(metrics::kUnigramLoss, &RunResult::unigram_loss);
  visit(metrics::kTrainBytesPerToken, &RunResult::train_bytes_per_token);
  visit(metrics::kValBytesPerToken, &RunResult::val_bytes_per_token);
  visit(metrics::kValLossPerByte, &RunResult::val_loss_per_byte);
  visit(metrics::kTrainAe, &RunResult::train_ae);
  visit(metrics::kAllocation, &RunResult::allocation);
}

// Does the same for a layer's RouterHealth; member is a pointer to a double, an
// int64_t or an optional<double>. Files have lists of them [num_layers].
template <typename Visitor>
constexpr void VisitHealthMetrics(Visitor&& visit) {
  visit(metrics::kLoadEntropy, &RouterHealth::load_entropy);
  visit(metrics::kRelativeLoadEntropy, &RouterHealth::relative_load_entropy);
  visit(metrics::kDeadExperts, &RouterHealth::dead_experts);
  visit(metrics::kAtCapFraction, &RouterHealth::at_cap_fraction);
  visit(metrics::kLayerZeroActiveFraction, &RouterHealth::zero_active_fraction);
  visit(metrics::kTruncatedMass, &RouterHealth::truncated_mass);
}

// Does the same for the MeasuredAnswers of a measure; member is a pointer to a
// double or an int64_t. Files have lists of them, by measure.
template <typename Visitor>
constexpr void VisitAnswerMetrics(Visitor&& visit) {
  visit(metrics::kCorrect, &MeasuredAnswers::correct);
  visit(metrics::kAccuracy, &MeasuredAnswers::accuracy);
  visit(metrics::kStandardError, &MeasuredAnswers::standard_error);
}

// Returns the bytes of all members that `visit_list`, a function above, lists.
template <typename Record, typename VisitList>
constexpr size_t ListedBytes(VisitList visit_list) {
  size_t bytes = 0;
  visit_list(
      [&]<typename T>(const Metric&, T Record::*) { bytes += sizeof(T); });
  return bytes;
}
static_assert(ListedBytes<StepRecord>([](auto visit) {
                VisitStepMetrics(visit);
              }) + sizeof(StepRecord::step) ==
                  sizeof(StepRecord),
              "VisitStepMetrics lists every number of a StepRecord");
static_assert(ListedBytes<Validation>([](auto visit) {
                VisitValidationMetrics(visit);
              }) == sizeof(Validation),
              "VisitValidationMetrics lists every number of a Validation");
static_assert(ListedBytes<EvaluationRecord>([](auto visit) {
                VisitEvaluationMetrics(visit);
              }) + sizeof(EvaluationRecord::step) ==
                  sizeof(EvaluationRecord),
              "VisitEvaluationMetrics lists every number of its record");
static_assert(ListedBytes<RouterHealth>([](auto visit) {
                VisitHealthMetrics(visit);
              }) == sizeof(RouterHealth),
              "VisitHealthMetrics lists every number of a RouterHealth");
static_assert(ListedBytes<MeasuredAnswers>([](auto visit) {
                VisitAnswerMetrics(visit);
              }) == sizeof(MeasuredAnswers),
              "VisitAnswerMetrics lists every number of its record");
// The bytes of members that are no metrics; a bool is padded to 8 bytes.
inline constexpr size_t kOtherBytesOfRunResult =
    sizeof(RunResult::identity) + sizeof(RunResult::config) +
    sizeof(decltype(RunResult::steps)) +
    sizeof(RunResult::at_schedule_temperature) +
    sizeof(RunResult::final_validation) + sizeof(RunResult::devices) +
    sizeof(decltype(RunResult::code_version)) +
    sizeof(RunResult::final_evaluations) +
    sizeof(int64_t[2]);  // tau_calibrated, resumed
static_assert(ListedBytes<RunResult>([](auto visit) {
                VisitRunMetrics(visit);
              }) + kOtherBytesOfRunResult ==
                  sizeof(RunResult),
              "VisitRunMetrics lists every number of a RunResult");

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_METRICS_H_
