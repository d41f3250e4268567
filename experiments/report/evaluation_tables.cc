// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/evaluation_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/config/router_traits.h"
#include "core/text/text_table.h"
#include "experiments/report/row_summary.h"
#include "experiments/report/run_columns.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

using trainer::Metric;
using trainer::RouterHealth;
using trainer::RunResult;
namespace metrics = trainer::metrics;

constexpr size_t kWidth = 96;

bool HasHealth(const RunResult& result) {
  return result.final_evaluations &&
         !result.final_evaluations->router_health.empty();
}

// The row with only those finished seeds that satisfy `has`.
RowSummary Restricted(const RowSummary& row,
                      const std::function<bool(const RunResult&)>& has) {
  RowSummary some = row;
  some.runs = row.Finished();
  std::erase_if(some.runs,
                [&](const RunOutcome* run) { return !has(*run->result); });
  return some;
}

std::string Label(const RowSummary& row) {
  return fmt::format("{}/{}", row.corpus->id, row.row->id);
}

std::string Runs(const RowSummary& some, const RowSummary& row) {
  return fmt::format("{}/{}", some.runs.size(), row.runs.size());
}

EvaluationTable InferenceTauTable(const std::vector<RowSummary>& rows) {
  EvaluationTable table;
  table.title = "Inference with another tau";
  table.caption = fmt::format(
      "Final parameters, held-out text, T = 1, noise off; means "
      "over seeds, sd: their deviation. {}. {}. {}. {}. {}. The "
      "sparse router has no tau.",
      Legend(metrics::kTauFactor), Legend(metrics::kActiveExperts),
      Legend(metrics::kLoss), Legend(metrics::kZeroActiveFraction),
      Legend(metrics::kRelativeLoadVariance));
  table.header = {"row",
                  metrics::kTauFactor.title,
                  metrics::kTau.title,
                  metrics::kActiveExperts.title,
                  metrics::kLoss.title,
                  "sd",
                  metrics::kZeroActiveFraction.title,
                  metrics::kRelativeLoadVariance.title,
                  "runs"};
  for (const RowSummary& row : rows) {
    std::set<double> factors;
    for (const RunOutcome* run : row.Finished()) {
      if (!run->result->final_evaluations) continue;
      for (const auto& at : run->result->final_evaluations->inference_tau) {
        factors.insert(at.factor);
      }
    }
    for (const double factor : factors) {
      const RowSummary some = Restricted(row, [&](const RunResult& r) {
        return AtFactor(r, factor) != nullptr;
      });
      const auto over = [&](double trainer::Validation::*member) {
        return some.Over([&](const RunResult& r) {
          return AtFactor(r, factor)->validation.*member;
        });
      };
      const auto cell = [&](const Metric& metric,
                            double trainer::Validation::*member) {
        return Shown(metric, over(member).mean);
      };
      const Sample tau = some.Over(
          [&](const RunResult& r) { return AtFactor(r, factor)->tau; });
      const Sample loss = over(&trainer::Validation::loss);
      table.rows.push_back(
          {Label(row), Shown(metrics::kTauFactor, factor),
           Shown(metrics::kTau, tau.mean),
           cell(metrics::kActiveExperts, &trainer::Validation::active_experts),
           Shown(metrics::kLoss, loss.mean),
           loss.deviation ? Shown(metrics::kLoss, *loss.deviation) : "",
           cell(metrics::kZeroActiveFraction,
                &trainer::Validation::zero_active_fraction),
           cell(metrics::kRelativeLoadVariance,
                &trainer::Validation::relative_load_variance),
           Runs(some, row)});
    }
  }
  return table;
}

// The mean of a number over the layers of a run.
double MeanOverLayers(const RunResult& result, double RouterHealth::*member) {
  const auto& layers = result.final_evaluations->router_health;
  double sum = 0;
  for (const RouterHealth& layer : layers) sum += layer.*member;
  return sum / static_cast<double>(layers.size());
}

double LeastEntropy(const RunResult& result) {
  double least = 1;
  for (const auto& layer : result.final_evaluations->router_health) {
    least = std::min(least, layer.relative_load_entropy);
  }
  return least;
}

double DeadExperts(const RunResult& result) {
  int64_t dead = 0;
  for (const auto& layer : result.final_evaluations->router_health) {
    dead += layer.dead_experts;
  }
  return static_cast<double>(dead);
}

double TruncatedMass(const RunResult& result) {
  const auto& layers = result.final_evaluations->router_health;
  double sum = 0;
  for (const RouterHealth& layer : layers) sum += layer.truncated_mass.value();
  return sum / static_cast<double>(layers.size());
}

EvaluationTable RouterHealthTable(const std::vector<RowSummary>& rows) {
  EvaluationTable table;
  table.title = "Router health";
  table.caption = fmt::format(
      "Final parameters, held-out text, tau of training, T = 1, noise off; "
      "means over layers. {}; least: of the worst layer. {}; in all layers, of "
      "the number given. {}. {}. {}.",
      Legend(metrics::kRelativeLoadEntropy), Legend(metrics::kDeadExperts),
      Legend(metrics::kAtCapFraction),
      Legend(metrics::kLayerZeroActiveFraction),
      Legend(metrics::kTruncatedMass));
  table.header = {"row",
                  metrics::kRelativeLoadEntropy.title,
                  "least",
                  metrics::kDeadExperts.title,
                  "of",
                  metrics::kAtCapFraction.title,
                  metrics::kLayerZeroActiveFraction.title,
                  metrics::kTruncatedMass.title,
                  "runs"};
  for (const RowSummary& row : rows) {
    const RowSummary some = Restricted(row, HasHealth);
    if (some.runs.empty()) continue;
    const auto cell = [&](const Metric& metric, double RouterHealth::*member) {
      const auto over_layers = [&](const RunResult& r) {
        return MeanOverLayers(r, member);
      };
      return Shown(metric, some.Over(over_layers).mean);
    };
    const ModelConfig& model = row.config().model;
    table.rows.push_back(
        {Label(row),
         cell(metrics::kRelativeLoadEntropy,
              &RouterHealth::relative_load_entropy),
         Shown(metrics::kRelativeLoadEntropy, some.Over(LeastEntropy).mean),
         Shown(metrics::kDeadExperts, some.Over(DeadExperts).mean),
         std::to_string(model.num_layers * model.num_experts),
         cell(metrics::kAtCapFraction, &RouterHealth::at_cap_fraction),
         cell(metrics::kLayerZeroActiveFraction,
              &RouterHealth::zero_active_fraction),
         TraitsOf(row.config()).lapsum
             ? Shown(metrics::kTruncatedMass, some.Over(TruncatedMass).mean)
             : "",
         Runs(some, row)});
  }
  return table;
}

}  // namespace

std::vector<EvaluationTable> EvaluationTables(const GridOutcome& outcome) {
  const std::vector<RowSummary> rows = SummarizeRows(outcome);
  std::vector<EvaluationTable> tables = {InferenceTauTable(rows),
                                         RouterHealthTable(rows)};
  std::erase_if(
      tables, [](const EvaluationTable& table) { return table.rows.empty(); });
  return tables;
}

std::string DescribeTables(const std::vector<EvaluationTable>& tables) {
  std::string text;
  for (const EvaluationTable& table : tables) {
    TextTable lines(table.header);
    for (const auto& row : table.rows) lines.Add(row);
    text += table.title + "\n" + lines.Text() + "\n" +
            Wrap(table.caption, kWidth, 0) + "\n\n";
  }
  return text;
}

}  // namespace softmoe::experiments
