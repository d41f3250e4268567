// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/results_columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "core/config/router_traits.h"
#include "experiments/report/row_summary.h"
#include "experiments/report/run_columns.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using golden::Column;
using trainer::Metric;
using trainer::RunResult;
using trainer::StepRecord;
using trainer::TaskMeasure;
using trainer::Validation;
namespace metrics = trainer::metrics;

// The paper's count of active parameters in millions (SPEC.md 3.1, N1): the
// base and the rounded size of an expert in its own model.
constexpr double kPaperBase = 58.54464;
constexpr double kPaperPerExpert = 49.2;

// The paper says that most of the budget has moved by this step.
constexpr int64_t kEarly = 25000;

// A column that is shown and never judged.
Column Recorded(const std::string& id, const Metric& metric) {
  Column column;
  column.id = id;
  column.unit = metric.unit;
  column.metric = metric.definition;
  column.decimals = 6;
  return column;
}

// Our version of a column in the golden's table.
ResultsColumn Golden(const std::string& id, const Metric& metric) {
  return {id, ColumnOf(metric).read};
}

// A number of active experts, or a number computed from it alone.
ResultsColumn ByK(ResultsColumn column) {
  column.by_k = true;
  return column;
}

// A column that the golden lacks.
ResultsColumn Own(const Metric& metric) {
  return {metric.name, ColumnOf(metric).read, false, nullptr,
          Recorded(metric.name, metric)};
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double ExactActiveParameters(const RunResult& r) {
  return ColumnOf(metrics::kActiveParameters).read(r) / 1e6;
}

// The share of the last three layers in the sum over layers.
double LastThreeShare(const std::vector<double>& layers) {
  const auto last =
      layers.end() - std::min<std::ptrdiff_t>(3, std::ssize(layers));
  return std::accumulate(last, layers.end(), 0.0) / Sum(layers);
}

double LastThreeOfBudget(const RunResult& r) {
  return LastThreeShare(r.allocation);
}

double LastThreeOfActive(const RunResult& r) {
  return LastThreeShare(r.final_validation.layer_active_experts);
}

// The sum of the allocation at the step at which it is furthest from K.
double WorstBudget(const RunResult& r) {
  const double budget = r.config.router.mean_active_experts *
                        static_cast<double>(r.config.model.num_layers);
  double worst = Sum(r.allocation);
  for (const StepRecord& step : r.steps) {
    const double sum = Sum(step.allocation);
    if (std::abs(sum - budget) > std::abs(worst - budget)) worst = sum;
  }
  return worst;
}

double SmallestAllocation(const RunResult& r) {
  double least = *std::min_element(r.allocation.begin(), r.allocation.end());
  for (const StepRecord& step : r.steps) {
    for (const double k : step.allocation) least = std::min(least, k);
  }
  return least;
}

// How much of the way to the final k_l is done after 25k steps: 1 - (sum_l
// |k_l(25k) - k_l(end)|) / (sum_l |k_l(0) - k_l(end)|), as in EarlyMovement of
// golden/verdict/miniature_quantity.cc; below 0 if k_l has moved away from it.
// Every layer begins with the same k, and a step has the k_l left by the
// updates before it. Interpolates linearly between steps, since a record lacks
// step 25001. Not finite for a run that ends by then or moves nothing.
double MovedEarly(const RunResult& r) {
  const auto to_end = [&](const std::vector<double>& allocation) {
    double sum = 0;
    for (size_t l = 0; l < allocation.size(); ++l) {
      sum += std::abs(allocation[l] - r.allocation[l]);
    }
    return sum;
  };
  const auto after =
      std::ranges::lower_bound(r.steps, kEarly + 1, {}, &StepRecord::step);
  if (after == r.steps.begin() || after == r.steps.end()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const StepRecord& before = *(after - 1);
  const double part = static_cast<double>(kEarly + 1 - before.step) /
                      static_cast<double>(after->step - before.step);
  std::vector<double> early;
  for (size_t l = 0; l < r.allocation.size(); ++l) {
    early.push_back(
        std::lerp(before.allocation[l], after->allocation[l], part));
  }
  const std::vector<double> first(r.allocation.size(),
                                  r.config.router.mean_active_experts);
  return 1 - to_end(early) / to_end(first);
}

// Appends the accuracies at the tau of training, or at `factor` times that.
void AddAccuracies(std::optional<double> factor, TaskMeasure by,
                   std::vector<ResultsColumn>* measures) {
  for (const AccuracyColumn& column : AccuracyColumns()) {
    // Also nullptr if some of the items are missing.
    const auto answers = [factor, &column](const RunResult& r) {
      const trainer::TaskResult* task = FindTask(r, column.answers, factor);
      return task != nullptr && task->right.size() == column.items ? task
                                                                   : nullptr;
    };
    ResultsColumn measure{
        column.id, [answers, by](const RunResult& r) {
          const trainer::TaskResult* task = answers(r);
          return task == nullptr
                     ? std::numeric_limits<double>::quiet_NaN()
                     : 100 * task->measures[static_cast<size_t>(by)].accuracy;
        }};
    measure.accuracy = &column;
    measure.by = by;
    measure.answers = answers;
    measures->push_back(std::move(measure));
  }
}

}  // namespace

std::span<const AccuracyColumn> AccuracyColumns() {
  static constexpr AccuracyColumn kAccuracies[] = {
      {"piqa", "piqa", "piqa", 1838,
       "lm-evaluation-harness 0.4.13 on PIQA, zero-shot, all 1838 validation "
       "items; ASSUMED: acc or acc_norm is not stated"},
      {"hellaswag", "hellaswag", "hellaswag", 10042,
       "lm-evaluation-harness 0.4.13 on HellaSwag, zero-shot, all 10042 "
       "validation items; ASSUMED: acc or acc_norm is not stated"},
      {"arc_e", "arc_easy_validation", "arc_easy_validation_four_choices", 567,
       "lm-evaluation-harness 0.4.13 on ARC-Easy, zero-shot, the 567 of "
       "570 validation items that have four choices; ASSUMED: acc or acc_norm, "
       "and which 567 items, is not stated (N18)"}};
  return kAccuracies;
}

std::vector<ResultsColumn> MainColumns(bool paper_sizes, TaskMeasure by) {
  ResultsColumn active{"active_params", ExactActiveParameters};
  if (paper_sizes) {
    active.read = [](const RunResult& r) {
      return kPaperBase + kPaperPerExpert * r.final_validation.active_experts;
    };
  }
  Column exact = Recorded("active_params_exact", metrics::kActiveParameters);
  exact.unit = "1e6 params";  // as the golden's active_params
  std::vector<ResultsColumn> measures = {
      {"mean_active_experts",
       [](const RunResult& r) { return r.config.router.mean_active_experts; },
       true},
      {"expansion_factor",
       [](const RunResult& r) { return r.config.router.expansion_factor; },
       true, [](const Config& config) { return TraitsOf(config).cap; }},
      ByK(Golden("train_ae", metrics::kTrainAe)),
      ByK(Golden("infer_ae", metrics::kInferAe)),
      ByK(active),
  };
  AddAccuracies({}, by, &measures);
  measures.push_back(Golden("val_loss", metrics::kValLoss));
  measures.push_back(
      {"active_params_exact", ExactActiveParameters, false, nullptr, exact});
  measures.push_back(Own(metrics::kUnigramLoss));
  measures.push_back(Own(metrics::kZeroActiveFraction));
  return measures;
}

std::vector<ResultsColumn> LoadVarianceColumns() {
  std::vector<ResultsColumn> measures = MainColumns(false, {});
  measures.resize(2);  // k and alpha
  measures.push_back(Golden("load_variance", metrics::kRelativeLoadVariance));
  return measures;
}

std::vector<ResultsColumn> TauColumns(TaskMeasure by) {
  std::vector<ResultsColumn> measures = {
      {"tau", [](const RunResult& r) { return r.tau; }, true},
      ByK(Golden("ae", metrics::kInferAe))};
  AddAccuracies({}, by, &measures);
  return measures;
}

std::vector<ResultsColumn> JitterColumns(TaskMeasure by) {
  std::vector<ResultsColumn> measures;
  AddAccuracies({}, by, &measures);
  measures.push_back(Golden("val_loss", metrics::kValLoss));
  return measures;
}

std::vector<ResultsColumn> InferenceTauColumns(double factor, TaskMeasure by) {
  const auto over = [factor](double Validation::*member) {
    return [factor, member](const RunResult& r) {
      const trainer::InferenceTau* at = AtFactor(r, factor);
      return at == nullptr ? std::numeric_limits<double>::quiet_NaN()
                           : at->validation.*member;
    };
  };
  std::vector<ResultsColumn> measures = {
      {"infer_tau", [factor](const RunResult& r) { return factor * r.tau; },
       true,
       // A calibrated tau is measured, not a setting that later runs must have;
       // it is in the row's field eval.tau.
       [](const Config& config) { return config.router.tau.has_value(); }},
      {"ae", over(&Validation::active_experts)}};
  AddAccuracies(factor, by, &measures);
  measures.push_back({"loss", over(&Validation::loss), false, nullptr,
                      Recorded("loss", metrics::kLoss)});
  return measures;
}

std::vector<ResultsColumn> AllocationColumns() {
  return {{"top3_share", LastThreeOfBudget},
          {"budget", WorstBudget},
          {"least_allocation", SmallestAllocation},
          {"moved_by_25k", MovedEarly},
          {"top3_active_share", LastThreeOfActive}};
}

std::vector<ResultsColumn> LayerColumns(int64_t num_layers) {
  std::vector<ResultsColumn> measures;
  for (int64_t l = 0; l < num_layers; ++l) {
    const std::string id = fmt::format("layer_{}", l + 1);
    measures.push_back(
        {id,
         [l](const RunResult& r) {
           return r.allocation[static_cast<size_t>(l)];
         },
         false,
         [l](const Config& config) { return l < config.model.num_layers; },
         Recorded(id, metrics::kAllocation)});
  }
  return measures;
}

}  // namespace softmoe::experiments
