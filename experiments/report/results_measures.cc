// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/results_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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
using trainer::Validation;
namespace metrics = trainer::metrics;

// The paper's tally of active parameters in millions (SPEC.md 3.1, N1): base
// and rounded expert size of its own model.
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
Measure Golden(const std::string& id, const Metric& metric) {
  return {id, ColumnOf(metric).read};
}

// A column that the golden lacks.
Measure Own(const Metric& metric) {
  return {metric.name, ColumnOf(metric).read, false, nullptr,
          Recorded(metric.name, metric)};
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double ExactActiveParameters(const RunResult& r) {
  return ColumnOf(metrics::kActiveParameters).read(r) / 1e6;
}

// Share of the budget that the last three layers hold at the end.
double LastThreeShare(const RunResult& r) {
  const auto& k = r.allocation;
  const auto last = k.end() - std::min<std::ptrdiff_t>(3, k.end() - k.begin());
  return std::accumulate(last, k.end(), 0.0) / Sum(k);
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

// sum_l |k_l(25k) - k_l(0)| divided by the same at the end; every layer begins
// with the same k. NaN for a run that ends earlier or moves nothing.
double MovedEarly(const RunResult& r) {
  const auto moved = [&](const std::vector<double>& allocation) {
    double sum = 0;
    for (const double k : allocation) {
      sum += std::abs(k - r.config.router.mean_active_experts);
    }
    return sum;
  };
  for (const StepRecord& step : r.steps) {
    if (step.step == kEarly && r.steps.back().step > kEarly) {
      return moved(step.allocation) / moved(r.allocation);
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

bool HasPaperSizes(const ModelConfig& model) {
  const ModelConfig paper;  // compares with the defaults, the paper's sizes
  return model.num_layers == paper.num_layers &&
         model.d_model == paper.d_model && model.d_ffn == paper.d_ffn &&
         model.num_experts == paper.num_experts &&
         model.vocab_size == paper.vocab_size;
}

std::vector<Measure> MainMeasures(bool paper_sizes) {
  Measure active{"active_params", ExactActiveParameters};
  if (paper_sizes) {
    active.read = [](const RunResult& r) {
      return kPaperBase + kPaperPerExpert * r.final_validation.active_experts;
    };
  }
  Column exact = Recorded("active_params_exact", metrics::kActiveParameters);
  exact.unit = "1e6 params";  // as the golden's active_params
  return {
      {"mean_active_experts",
       [](const RunResult& r) { return r.config.router.mean_active_experts; },
       true},
      {"expansion_factor",
       [](const RunResult& r) { return r.config.router.expansion_factor; },
       true, [](const Config& config) { return TraitsOf(config).cap; }},
      Golden("train_ae", metrics::kTrainAe),
      Golden("infer_ae", metrics::kInferAe),
      active,
      {"piqa", nullptr},
      {"hellaswag", nullptr},
      {"arc_e", nullptr},
      Golden("val_loss", metrics::kValLoss),
      {"active_params_exact", ExactActiveParameters, false, nullptr, exact},
      Own(metrics::kUnigramLoss),
      Own(metrics::kZeroActiveFraction),
  };
}

std::vector<Measure> LoadVarianceMeasures() {
  std::vector<Measure> measures = MainMeasures(false);
  measures.resize(2);  // k and alpha
  measures.push_back(Golden("load_variance", metrics::kRelativeLoadVariance));
  return measures;
}

std::vector<Measure> TauMeasures() {
  return {{"tau", [](const RunResult& r) { return r.tau; }, true},
          Golden("ae", metrics::kInferAe),
          {"piqa", nullptr},
          {"hellaswag", nullptr},
          {"arc_e", nullptr}};
}

std::vector<Measure> JitterMeasures() {
  return {{"piqa", nullptr},
          {"hellaswag", nullptr},
          {"arc_e", nullptr},
          Golden("val_loss", metrics::kValLoss)};
}

std::vector<Measure> InferenceTauMeasures(double factor) {
  const auto over = [factor](double Validation::*member) {
    return [factor, member](const RunResult& r) {
      const trainer::InferenceTau* at = AtFactor(r, factor);
      return at == nullptr ? std::numeric_limits<double>::quiet_NaN()
                           : at->validation.*member;
    };
  };
  return {{"infer_tau", [factor](const RunResult& r) { return factor * r.tau; },
           true},
          {"ae", over(&Validation::active_experts)},
          {"piqa", nullptr},
          {"hellaswag", nullptr},
          {"arc_e", nullptr},
          {"loss", over(&Validation::loss), false, nullptr,
           Recorded("loss", metrics::kLoss)}};
}

std::vector<Measure> AllocationMeasures() {
  return {{"top3_share", LastThreeShare},
          {"budget", WorstBudget},
          {"least_allocation", SmallestAllocation},
          {"moved_by_25k", MovedEarly}};
}

std::vector<Measure> LayerMeasures(int64_t num_layers) {
  std::vector<Measure> measures;
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
