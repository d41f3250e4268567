// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/experiment_tables.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/testing/report_test_util.h"
#include "golden/testing/paper_test_util.h"

namespace softmoe::experiments {
namespace {

using golden::Paper;
using Texts = std::vector<std::string>;

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
    // Means of 250 and 500 ms, and the tokens processed per second.
    const std::string rate = std::to_string(
        static_cast<int64_t>((tokens / 0.25 + tokens / 0.5) / 2));
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
