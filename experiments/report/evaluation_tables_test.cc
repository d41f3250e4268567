// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/evaluation_tables.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "experiments/report/report_csv.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

using Texts = std::vector<std::string>;

trainer::FinalEvaluations& EvaluationsOf(RunOutcome& run) {
  if (!run.result->final_evaluations) {
    run.result->final_evaluations = trainer::FinalEvaluations();
  }
  return *run.result->final_evaluations;
}

void AddTau(RunOutcome& run, double factor, double loss) {
  trainer::InferenceTau at{
      .factor = factor, .tau = 1.5 * factor, .validation = {}};
  at.validation.loss = loss;
  at.validation.active_experts = 2 / factor;
  at.validation.zero_active_fraction = factor / 8;
  at.validation.relative_load_variance = 0.0625;
  at.validation.load_cv = 0.25;
  at.validation.load_var_over_mean = 16;
  EvaluationsOf(run).inference_tau.push_back(at);
}

void AddHealth(RunOutcome& run, double entropy, int64_t dead) {
  std::vector<trainer::RouterHealth> layers(
      static_cast<size_t>(run.run.config.model.num_layers));
  for (size_t l = 0; l < layers.size(); ++l) {
    layers[l].load_entropy = 2 * entropy;
    layers[l].relative_load_entropy = l == 0 ? entropy - 0.25 : entropy;
    layers[l].dead_experts = l == 0 ? dead : 0;
    layers[l].at_cap_fraction = 0.5;
    layers[l].zero_active_fraction = 0.125;
    if (run.run.config.router.kind != RouterKind::kSparse) {
      layers[l].truncated_mass = 0.75;
    }
  }
  EvaluationsOf(run).router_health = layers;
}

TEST(EvaluationTables, AreMissingWhereNothingWasMeasured) {
  GridOutcome outcome = ExampleOutcome();
  EXPECT_TRUE(EvaluationTables(outcome).empty());
  EXPECT_EQ(DescribeTables(EvaluationTables(outcome)), "");
  // If a plan asks only for other tau, the sparse row has no numbers.
  RunOf(outcome, "sparse-1").result->final_evaluations =
      trainer::FinalEvaluations();
  EXPECT_TRUE(EvaluationTables(outcome).empty());
}

// Means over the seeds that have the number: one of three was not measured at
// half the tau, another is not finished.
TEST(EvaluationTables, ShowInferenceTauOverSeeds) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  std::vector<RunOutcome*> runs;
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id == "soft-2") runs.push_back(&run);
  }
  ASSERT_EQ(runs.size(), 3u);
  AddTau(*runs[0], 0.5, 3.0);
  AddTau(*runs[0], 1, 2.5);
  AddTau(*runs[1], 1, 3.5);
  AddTau(*runs[2], 1, 9.0);
  Interrupt(*runs[2]);
  const auto tables = EvaluationTables(outcome);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].header, (Texts{"row", "factor", "tau", "AE", "loss", "sd",
                                     "zero AE", "load variance", "runs"}));
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0], (Texts{"foldoc/soft-2", "0.5", "0.750", "4.00",
                                      "3.0000", "", "6.2%", "0.0625", "1/3"}));
  // Losses 2.5 and 3.5: deviation sqrt(1/2).
  EXPECT_EQ(tables[0].rows[1],
            (Texts{"foldoc/soft-2", "1", "1.500", "2.00", "3.0000", "0.7071",
                   "12.5%", "0.0625", "2/3"}));
  const std::string text = DescribeTables(EvaluationTables(outcome));
  EXPECT_NE(text.find("Inference with another tau"), std::string::npos);
  EXPECT_NE(tables[0].caption.find("The sparse router has no tau"),
            std::string::npos);
  EXPECT_EQ(text.find("Router health"), std::string::npos);

  const std::string csv = InferenceTauCsv(outcome);
  EXPECT_NE(csv.find("\nfoldoc/soft-2/seed1,0.5,0.75,3,4,0.0625,0.0625,0.25,"
                     "16\n"),
            std::string::npos)
      << csv;
  EXPECT_EQ(csv.find("seed3"), std::string::npos) << csv;
}

TEST(EvaluationTables, ShowRouterHealthOverLayersAndSeeds) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  for (RunOutcome& run : outcome.runs) {
    const bool first = run.run.seed == 1;
    if (run.run.row.id == "soft-2") {
      AddHealth(run, first ? 1 : 0.75, first ? 2 : 1);
    } else if (run.run.row.id == "sparse-1" && first) {
      AddHealth(run, 1, 0);
    }
  }
  const ModelConfig& model = outcome.runs[0].run.config.model;
  const double layers = static_cast<double>(model.num_layers);
  const auto mean = [&](double entropy) { return entropy - 0.25 / layers; };
  const auto four = [](double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4f", value);
    return std::string(text);
  };
  const std::string experts =
      std::to_string(model.num_layers * model.num_experts);
  const auto tables = EvaluationTables(outcome);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].header, (Texts{"row", "entropy", "least", "dead", "of",
                                     "at cap", "zero AE", "cut", "runs"}));
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(tables[0].rows[0],
            (Texts{"foldoc/sparse-1", four(mean(1)), "0.7500", "0", experts,
                   "50.0%", "12.5%", "", "1/2"}));
  EXPECT_EQ(tables[0].rows[1],
            (Texts{"foldoc/soft-2", four(mean(0.875)), "0.6250", "1.5", experts,
                   "50.0%", "12.5%", "0.750", "2/2"}));

  const std::string csv = RouterHealthCsv(outcome);
  EXPECT_NE(csv.find("\nfoldoc/sparse-1/seed1,0,2,0.75,0,0.5,0.125,\n"),
            std::string::npos)
      << csv;
  EXPECT_NE(csv.find("\nfoldoc/soft-2/seed2,0,1.5,0.5,1,0.5,0.125,0.75\n"),
            std::string::npos)
      << csv;
}

}  // namespace
}  // namespace softmoe::experiments
