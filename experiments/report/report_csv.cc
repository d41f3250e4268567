// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_csv.h"

#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/config/router_traits.h"
#include "experiments/report/run_columns.h"
#include "golden/verdict/miniature_report.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using golden::MiniatureCase;
using golden::MiniatureMeasureVerdict;
using golden::MiniatureStatusName;
using golden::MiniatureVerdict;
using trainer::Metric;
using trainer::StepRecord;
using trainer::Validation;
namespace metrics = trainer::metrics;

// RFC 4180: a field is quoted if it has a separator, a quote or a line end.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

// Shortest text that reads back as the same double.
std::string Number(double value) { return fmt::format("{}", value); }
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

std::string CsvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += (&field == fields.data() ? "" : ",") + CsvField(field);
  }
  return line + "\n";
}

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
  std::string text = CsvLine(header);
  for (const RunOutcome& run : outcome.runs) {
    const RouterConfig& router = run.run.config.router;
    std::vector<std::string> fields = {
        run.run.id,
        run.run.corpus.id,
        run.run.row.id,
        run.run.row.label,
        run.run.row.variant,
        std::to_string(run.run.seed),
        StateName(run.state),
        Number(router.mean_active_experts),
        TraitsOf(router.kind).cap ? Number(router.expansion_factor) : ""};
    if (run.state == RunState::kFinished) {
      for (const RunColumn& column : RunColumns()) {
        const double value = column.read(*run.result);
        fields.push_back(std::isnan(value) ? "" : Number(value));
      }
      fields.push_back(ConfigHash(run.result->identity.config));
    }
    fields.resize(header.size());
    text += CsvLine(fields);
  }
  return text;
}

std::string StepsCsv(const GridOutcome& outcome, int64_t every) {
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
    const std::vector<StepRecord>& steps = run.result->steps;
    for (const StepRecord& step : steps) {
      if (step.step % every != 0 && step.step != steps.back().step) continue;
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

std::string TasksCsv(const GridOutcome& outcome) {
  std::string text =
      fmt::format("run,{},task,items,measure", metrics::kTau.name);
  trainer::VisitAnswerMetrics([&](const Metric& metric, auto) {
    text += fmt::format(",{}", metric.name);
  });
  text += "\n";
  const auto add = [&](const RunOutcome& run, double tau,
                       const std::vector<trainer::TaskResult>& tasks) {
    for (const trainer::TaskResult& task : tasks) {
      for (size_t m = 0; m < task.measures.size(); ++m) {
        text += fmt::format("{},{},{},{},{}", CsvField(run.run.id), Number(tau),
                            task.name, task.right.size(),
                            trainer::kTaskMeasureNames[m]);
        trainer::VisitAnswerMetrics([&](const Metric&, auto member) {
          text += "," + Number(static_cast<double>(task.measures[m].*member));
        });
        text += "\n";
      }
    }
  };
  for (const RunOutcome& run : outcome.runs) {
    if (!run.result || !run.result->final_evaluations) continue;
    const trainer::FinalEvaluations& measured = *run.result->final_evaluations;
    add(run, run.result->tau, measured.tasks);
    for (const auto& at : measured.inference_tau) {
      if (at.factor != 1) add(run, at.tau, at.tasks);
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
      text += fmt::format("{},{}", CsvField(run.run.id), l + 1);
      trainer::VisitHealthMetrics([&](const Metric&, auto member) {
        text += "," + Number(layers[l].*member);
      });
      text += "\n";
    }
  }
  return text;
}

std::string ClaimsCsv(const MiniClaims& judged) {
  std::string text =
      "claim,claim_verdict,measure,measure_verdict,corpus,case,effect,"
      "interval_low,interval_high,unit,margin,seeds,p_shown,p_contradicted,"
      "decides,problem,cap_rise,assumes\n";
  for (const MiniatureVerdict& claim : judged.verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      const size_t num_cases = measure.cases.size();
      for (size_t c = 0; c < num_cases + measure.parts.size(); ++c) {
        const bool is_part = c >= num_cases;
        const MiniatureCase& each =
            is_part ? measure.parts[c - num_cases] : measure.cases[c];
        const bool tested = each.problem.empty();
        const bool decides =
            tested && c == measure.deciding &&
            measure.status != golden::MiniatureStatus::kReported;
        const auto number = [&](double value) {
          return tested ? Number(value) : "";
        };
        text += CsvLine(
            {claim.id, golden::ClaimStatusText(judged.verdicts, claim),
             measure.id, is_part ? "part" : MiniatureStatusName(measure.status),
             each.corpus, each.label, number(each.estimate),
             number(each.interval.low), number(each.interval.high),
             measure.unit, Number(measure.margin), std::to_string(each.seeds),
             number(each.p_shown), number(each.p_contradicted),
             decides ? "1" : "0", each.problem,
             tested && each.cap_rise ? Number(*each.cap_rise) : "",
             claim.assumes});
      }
    }
  }
  return text;
}

std::string DifferencesCsv(const std::vector<DifferenceLine>& lines) {
  std::string text =
      "row,step,seeds,active,linear,linear_low,linear_high,smooth,smooth_low,"
      "smooth_high\n";
  for (const DifferenceLine& line : lines) {
    for (const DifferencePoint& point : line.points) {
      text += fmt::format("{},{},{},{}", CsvField(line.row), point.step,
                          line.seeds.size(), Number(point.active));
      for (const golden::RegimeReading* reading :
           {&point.linear, &point.smooth}) {
        text += fmt::format(",{},{},{}", Number(reading->estimate),
                            Number(reading->interval.low),
                            Number(reading->interval.high));
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace softmoe::experiments
