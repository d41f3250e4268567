// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_tables.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/report/report_csv.h"
#include "experiments/report/run_columns.h"
#include "experiments/testing/report_test_util.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::experiments {
namespace {

using golden::Paper;
using Texts = std::vector<std::string>;

// The cell of row `row` under `title`.
std::string CellText(const GridTable& table, size_t row,
                     const std::string& title) {
  const auto found = std::ranges::find(table.header, title);
  if (found == table.header.end()) return "no column " + title;
  return table.rows.at(row).cells.at(
      static_cast<size_t>(found - table.header.begin()));
}

TEST(GridTable, GroupsRowsByTheExpertsTheyUse) {
  GridOutcome outcome = ExampleOutcome();
  const GridTable table = MakeGridTable(outcome);
  ASSERT_EQ(table.rows.size(), 4u);
  // Infer-AE 1, 2, 1.75 and 2.25.
  EXPECT_EQ(CellText(table, 0, "experts"), "= 1");
  EXPECT_EQ(CellText(table, 1, "experts"), "<= 2");
  EXPECT_EQ(CellText(table, 1, "model"), "Sparse MoE");
  EXPECT_EQ(CellText(table, 1, "alpha"), "-");
  EXPECT_EQ(CellText(table, 2, "experts"), "<= 2");
  EXPECT_EQ(CellText(table, 2, "model"), "SoftMoE*");
  EXPECT_EQ(CellText(table, 2, "train AE"), "1.62");  // 1.625, to even
  EXPECT_EQ(CellText(table, 2, "infer AE"), "1.75");
  EXPECT_EQ(CellText(table, 2, "tau"), "1.174 c");
  EXPECT_EQ(CellText(table, 3, "experts"), "<= 3");
  EXPECT_EQ(CellText(table, 3, "unigram"), "5.1000");
  EXPECT_EQ(CellText(table, 3, "zero AE"), "0.0%");
  EXPECT_EQ(CellText(table, 3, "sd"), "no column sd");
  for (const GridTable::Row& row : table.rows) {
    EXPECT_EQ(row.cells.size(), table.header.size());
  }
  // Whatever they used in training.
  trainer::RunResult& star = *RunOf(outcome, "star-1.5").result;
  star.train_ae = 2.05;
  star.final_validation.active_experts = 1.96;
  EXPECT_EQ(CellText(MakeGridTable(outcome), 2, "experts"), "<= 2");
}

// d_model 8, 3 layers, 8 experts of width 12, vocabulary 50; one expert active:
// 2*50*8 + 8 + 3*(2*8 + 4*64 + 8*8) + 3*1*(3*8*12) = 800 + 8 + 1008 + 864.
TEST(GridTable, CountsActiveParameters) {
  EXPECT_EQ(CellText(MakeGridTable(ExampleOutcome()), 0, "active"), "0.003M");
}

TEST(GridTable, SeedsGiveMeanAndDeviation) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  for (size_t i = 0; i < 3; ++i) {
    outcome.runs[i].result->final_validation.loss =
        3 + 0.1 * static_cast<double>(i);
  }
  const GridTable table = MakeGridTable(outcome);
  EXPECT_EQ(CellText(table, 0, "val loss"), "3.1000");
  EXPECT_EQ(CellText(table, 0, "sd"), "0.1000");
  EXPECT_EQ(CellText(table, 0, "seeds"), "3/3");
}

TEST(GridTable, WhatIsNotFinishedComesLastAndSaysSo) {
  GridOutcome outcome = ExampleOutcome();
  Fail(RunOf(outcome, "sparse-1"), "diverged");
  Interrupt(RunOf(outcome, "star-1.5"));
  const GridTable table = MakeGridTable(outcome);
  EXPECT_EQ(CellText(table, 0, "model"), "Sparse MoE");
  EXPECT_EQ(table.rows[0].cells.back(), "");
  EXPECT_EQ(table.rows[2].cells.back(), "FAILED");
  EXPECT_EQ(CellText(table, 2, "experts"), "");
  EXPECT_EQ(CellText(table, 2, "val loss"), "");
  EXPECT_EQ(table.rows[3].cells.back(), "not finished");
  EXPECT_NE(DescribeGridTable(outcome).find("FAILED"), std::string::npos);
}

TEST(GridTable, ShowsNoColumnThatNoRowHas) {
  GridOutcome outcome = ExampleOutcome();
  outcome.runs[0].result->unigram_loss = std::nan("");
  EXPECT_EQ(CellText(MakeGridTable(outcome), 0, "unigram"), "");
  for (RunOutcome& run : outcome.runs) {
    run.result->unigram_loss = std::nan("");
  }
  EXPECT_EQ(CellText(MakeGridTable(outcome), 0, "unigram"),
            "no column unigram");
  for (RunOutcome& run : outcome.runs) Interrupt(run);
  EXPECT_EQ(CellText(MakeGridTable(outcome), 0, "val loss"),
            "no column val loss");
}

TEST(GridTable, FitsATerminalAndExplainsItsColumns) {
  const GridOutcome outcome = ExampleOutcome();
  const std::string text = DescribeGridTable(outcome);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
  }
  const std::string legend = MakeGridTable(outcome).legend;
  for (const RunColumn& column : RunColumns()) {
    EXPECT_EQ(legend.find(column.metric.definition) != std::string::npos,
              column.in_table)
        << column.metric.name;
  }
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

// Accuracies 0.5 and 0.75: mean 62.5 %, deviation 25 % / sqrt(2); the third
// seed was not asked.
TEST(EvaluationTables, ShowTasksOverSeeds) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  double accuracy = 0.5;
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id != "soft-2" || run.run.seed == 3) continue;
    trainer::TaskResult task;
    task.name = "piqa";
    for (const double more : {0.0, 0.0625, 0.125, 0.25}) {
      task.measures.push_back({1, accuracy + more, 0.125});
    }
    task.right = {1, 0, 0, 1};
    EvaluationsOf(run).tasks = {task};
    accuracy = 0.75;
  }
  const auto tables = EvaluationTables(outcome);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].header,
            (Texts{"row", "task", "items", "acc", "acc_norm", "acc_bytes",
                   "acc_tokens", "sd", "se", "runs"}));
  EXPECT_EQ(tables[0].rows,
            (std::vector<Texts>{{"foldoc/soft-2", "piqa", "4", "62.50", "68.75",
                                 "75.00", "87.50", "17.68", "12.50", "2/3"}}));
  EXPECT_EQ(MakeGridTable(outcome).legend.find("not measured"),
            std::string::npos);
}

// 40 items of one file and 5 of another have no mean.
TEST(EvaluationTables, ShowOtherItemsOfATaskInALineOfTheirOwn) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id != "soft-2") continue;
    const bool part = run.run.seed == 2;
    trainer::TaskResult task;
    task.name = "piqa";
    task.sha256 = part ? "of a part" : "of all";
    const double accuracy = part ? 0.75 : run.run.seed == 1 ? 0.25 : 0.5;
    for (int m = 0; m < trainer::kNumTaskMeasures; ++m) {
      task.measures.push_back({1, accuracy, part ? 0.25 : 0.125});
    }
    task.right.assign(part ? 5 : 40, 0);
    EvaluationsOf(run).tasks = {task};
  }
  EXPECT_EQ(
      EvaluationTables(outcome).back().rows,
      (std::vector<Texts>{{"foldoc/soft-2", "piqa", "40", "37.50", "37.50",
                           "37.50", "37.50", "17.68", "12.50", "2/3"},
                          {"foldoc/soft-2", "piqa", "5", "75.00", "75.00",
                           "75.00", "75.00", "", "25.00", "1/3"}}));
  // The same number of items from another file is a different set.
  EvaluationsOf(RunOf(outcome, "soft-2")).tasks[0].sha256 = "of others";
  EXPECT_EQ(EvaluationTables(outcome).back().rows.size(), 3u);
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
  EXPECT_NE(csv.find("\nfoldoc/sparse-1/seed1,1,2,0.75,0,0.5,0.125,\n"),
            std::string::npos)
      << csv;
  EXPECT_NE(csv.find("\nfoldoc/soft-2/seed2,1,1.5,0.5,1,0.5,0.125,0.75\n"),
            std::string::npos)
      << csv;
}

TEST(ExperimentTables, OnlyThoseWhoseNumbersAreInNoResult) {
  GridOutcome outcome = ExampleOutcome();
  for (const char* table : {"", "main_results", "tau_ablation", "jitter"}) {
    outcome.grid.table = table;
    EXPECT_TRUE(ExperimentTables(outcome, Paper()).empty()) << table;
  }
  for (RunOutcome& run : outcome.runs) Interrupt(run);
  for (const char* table : {"compute", "throughput", "allocation"}) {
    outcome.grid.table = table;
    EXPECT_TRUE(ExperimentTables(outcome, Paper()).empty()) << table;
  }
}

TEST(ExperimentTables, TimesAreThoseOfTheClockBesideThePapers) {
  for (const bool paper_sizes : {false, true}) {
    GridOutcome outcome =
        ExampleOutcome({.seeds = {1, 2}, .paper_sizes = paper_sizes});
    outcome.grid.table = "throughput";
    double seconds = 0.25;  // per step; hours of the runs: 1 and 2
    for (RunOutcome& run : outcome.runs) {
      if (run.run.row.id != "sparse-2") continue;
      for (auto& step : run.result->steps) step.seconds = seconds;
      run.result->seconds = 4 * seconds * 3600;
      seconds *= 2;
    }
    const auto tables = ExperimentTables(outcome, Paper());
    ASSERT_EQ(tables.size(), 1u);
    ASSERT_EQ(tables[0].rows.size(), 4u);
    const TrainingConfig training = outcome.runs[0].run.config.training;
    const double tokens =
        static_cast<double>(training.global_batch_sequences *
                            outcome.runs[0].run.config.model.sequence_length);
    // The mean of 250 and 500 ms, in which a step's tokens are trained.
    const std::string rate = fmt::format("{:.0f}", tokens / 0.375);
    Texts expected = {"foldoc/sparse-2",
                      "2/2",
                      "2.00",
                      "1.500",
                      "375.0",
                      rate,
                      "-",
                      "-",
                      "-"};
    if (paper_sizes) {
      // T3 and T4 of the paper (SPEC.md 6b).
      expected[0] = "owt/sparse-2";
      expected[6] = "17.7";
      expected[7] = "438.96";
      expected[8] = "142836";
    }
    EXPECT_EQ(tables[0].rows[1], expected);
    EXPECT_EQ(tables[0].header.size(), expected.size());
  }
}

// The first steps are slow. A record has all of them, but few of the others.
TEST(ExperimentTables, ARecordedStepWeighsThoseItStandsFor) {
  trainer::RunResult result = *ExampleOutcome().runs[0].result;
  result.steps.resize(4);
  const int64_t at[] = {1, 2, 90, 100};
  const double seconds[] = {2, 2, 0.5, 1};
  for (size_t i = 0; i < result.steps.size(); ++i) {
    result.steps[i].step = at[i];
    result.steps[i].seconds = seconds[i];
  }
  // 2 steps of 2 s, 88 of 0.5 and 10 of 1.
  EXPECT_DOUBLE_EQ(MillisecondsAStep(result), 580);
  const double tokens =
      static_cast<double>(result.config.training.global_batch_sequences *
                          result.config.model.sequence_length);
  EXPECT_DOUBLE_EQ(TokensASecond(result), tokens / 0.58);
  result.steps.clear();
  EXPECT_TRUE(std::isnan(MillisecondsAStep(result)));
}

TEST(ExperimentTables, ActiveExpertsAreSharesOfTheTokensOfALayer) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  outcome.grid.table = "allocation";
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id != "soft-2" || run.run.seed != 2) continue;
    // All 1000 tokens of the last layer have 4 experts.
    auto& histogram = run.result->final_validation.active_histogram.back();
    std::fill(histogram.begin(), histogram.end(), 0);
    histogram[4] = 1000;
  }
  const auto tables = ExperimentTables(outcome, Paper());
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].header, (Texts{"row", "layer", "0", "1", "2", "3", "4"}));
  ASSERT_EQ(tables[0].rows.size(), 4u * 3u);  // rows, layers
  EXPECT_EQ(tables[0].rows[0], (Texts{"foldoc/sparse-1", "1", "0.0", "100.0",
                                      "0.0", "0.0", "0.0"}));
  // 2.25 experts are 750 tokens with 2 and 250 with 3; the other seed has them
  // all at 4.
  EXPECT_EQ(tables[0].rows.back(), (Texts{"foldoc/soft-2", "3", "0.0", "0.0",
                                          "37.5", "12.5", "50.0"}));
}

}  // namespace

}  // namespace softmoe::experiments
