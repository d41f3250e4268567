// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/config/router_traits.h"
#include "experiments/report/csv_text.h"
#include "experiments/report/row_summary.h"
#include "experiments/report/run_columns.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using trainer::Metric;
using trainer::StepRecord;
using trainer::Validation;
namespace metrics = trainer::metrics;

std::string Number(double value) { return CsvNumber(value); }
std::string Number(int64_t value) { return std::to_string(value); }
std::string Number(const std::optional<double>& value) {
  return value ? Number(*value) : "";
}

const char* StateName(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kInterrupted:
      return "interrupted";
    case RunState::kFinished:
      return "finished";
    case RunState::kFailed:
      return "failed";
  }
  return "unknown";
}

}  // namespace

std::string RunsCsv(const GridOutcome& outcome) {
  std::vector<std::string> header = {"run",
                                     "corpus",
                                     "row",
                                     "label",
                                     "variant",
                                     "seed",
                                     "state",
                                     "mean_active_experts",
                                     "expansion_factor"};
  for (const RunColumn& column : RunColumns()) {
    header.push_back(column.metric.name);
  }
  header.push_back("config_hash");
  std::string text = fmt::format("{}\n", fmt::join(header, ","));
  for (const RunOutcome& run : outcome.runs) {
    const RouterConfig& router = run.run.config.router;
    std::vector<std::string> fields = {
        CsvField(run.run.id),
        CsvField(run.run.corpus.id),
        CsvField(run.run.row.id),
        CsvField(run.run.row.label),
        CsvField(run.run.row.variant),
        std::to_string(run.run.seed),
        StateName(run.state),
        Setting(router.mean_active_experts),
        TraitsOf(router.kind).cap ? Setting(router.expansion_factor) : ""};
    if (run.state == RunState::kFinished) {
      for (const RunColumn& column : RunColumns()) {
        const double value = column.read(*run.result);
        fields.push_back(std::isnan(value) ? "" : Number(value));
      }
      fields.push_back(ConfigHash(run.result->identity.config));
    }
    fields.resize(header.size());
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

std::string StepsCsv(const GridOutcome& outcome) {
  std::vector<double StepRecord::*> members;
  std::string text = "run,step";
  trainer::VisitStepMetrics([&](const Metric& metric, auto member) {
    if constexpr (std::is_same_v<decltype(member), double StepRecord::*>) {
      if (metric.clock) return;
      text += fmt::format(",{}", metric.name);
      members.push_back(member);
    }
  });
  text += "\n";
  for (const RunOutcome& run : outcome.runs) {
    if (run.state != RunState::kFinished) continue;
    const std::string id = CsvField(run.run.id);
    for (const StepRecord& step : run.result->steps) {
      text += fmt::format("{},{}", id, step.step);
      for (const auto member : members) text += "," + Number(step.*member);
      text += "\n";
    }
  }
  return text;
}

std::string InferenceTauCsv(const GridOutcome& outcome) {
  std::vector<double Validation::*> members;
  std::string text =
      fmt::format("run,{},{}", metrics::kTauFactor.name, metrics::kTau.name);
  trainer::VisitValidationMetrics([&](const Metric& metric, auto member) {
    if constexpr (std::is_same_v<decltype(member), double Validation::*>) {
      text += fmt::format(",{}", metric.name);
      members.push_back(member);
    }
  });
  text += "\n";
  for (const RunOutcome& run : outcome.runs) {
    if (!run.result || !run.result->final_evaluations) continue;
    for (const auto& at : run.result->final_evaluations->inference_tau) {
      text += fmt::format("{},{},{}", CsvField(run.run.id), Number(at.factor),
                          Number(at.tau));
      for (const auto member : members) {
        text += "," + Number(at.validation.*member);
      }
      text += "\n";
    }
  }
  return text;
}

std::string RouterHealthCsv(const GridOutcome& outcome) {
  std::string text = "run,layer";
  trainer::VisitHealthMetrics([&](const Metric& metric, auto) {
    text += fmt::format(",{}", metric.name);
  });
  text += "\n";
  for (const RunOutcome& run : outcome.runs) {
    if (!run.result || !run.result->final_evaluations) continue;
    const auto& layers = run.result->final_evaluations->router_health;
    for (size_t l = 0; l < layers.size(); ++l) {
      text += fmt::format("{},{}", CsvField(run.run.id), l);
      trainer::VisitHealthMetrics([&](const Metric&, auto member) {
        text += "," + Number(layers[l].*member);
      });
      text += "\n";
    }
  }
  return text;
}

}  // namespace softmoe::experiments
