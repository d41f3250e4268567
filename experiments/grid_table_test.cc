// SPDX-License-Identifier: Apache-2.0
#include "experiments/grid_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/report_test_util.h"

namespace softmoe::experiments {
namespace {

TEST(GridTable, GroupsRowsByTheExpertsTheyUse) {
  const std::vector<GridTableRow> rows = MakeGridTable(ExampleOutcome());
  ASSERT_EQ(rows.size(), 4u);
  // Infer-AE 1, 2, 1.75 and 2.25.
  EXPECT_EQ(rows[0].budget, "= 1");
  EXPECT_EQ(rows[1].budget, "<= 2");
  EXPECT_EQ(rows[1].label, "Sparse MoE");
  EXPECT_EQ(rows[1].alpha, "-");
  EXPECT_EQ(rows[2].budget, "<= 2");
  EXPECT_EQ(rows[2].label, "SoftMoE*");
  EXPECT_EQ(rows[2].infer_experts, "1.75");
  EXPECT_EQ(rows[2].tau, "1.174 c");
  EXPECT_EQ(rows[3].budget, "<= 3");
  EXPECT_EQ(rows[3].unigram, "5.1000");
  EXPECT_EQ(rows[3].deviation, "");
}

// d_model 8, 3 layers, 8 experts of width 12, vocabulary 50; one expert active:
// 2*50*8 + 8 + 3*(2*8 + 4*64 + 8*8) + 3*1*(3*8*12) = 800 + 8 + 1008 + 864.
TEST(GridTable, CountsActiveParameters) {
  EXPECT_EQ(MakeGridTable(ExampleOutcome())[0].active_parameters, "0.003");
  const std::string text = DescribeGridTable(ExampleOutcome());
  EXPECT_NE(text.find("0.003 M"), std::string::npos) << text;
}

TEST(GridTable, SeedsGiveMeanAndDeviation) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  for (size_t i = 0; i < 3; ++i) {
    outcome.runs[i].result->final_validation.loss =
        3 + 0.1 * static_cast<double>(i);
  }
  const GridTableRow row = MakeGridTable(outcome)[0];
  EXPECT_EQ(row.loss, "3.1000");
  EXPECT_EQ(row.deviation, "0.1000");
  EXPECT_EQ(row.runs, "3/3");
  EXPECT_NE(DescribeGridTable(outcome).find("seeds"), std::string::npos);
}

TEST(GridTable, WhatIsNotFinishedComesLastAndSaysSo) {
  GridOutcome outcome = ExampleOutcome();
  Fail(RunOf(outcome, "sparse-1"), "diverged");
  Interrupt(RunOf(outcome, "star-1.5"));
  const std::vector<GridTableRow> rows = MakeGridTable(outcome);
  EXPECT_EQ(rows[0].label, "Sparse MoE");
  EXPECT_EQ(rows[2].problem, "FAILED");
  EXPECT_EQ(rows[2].budget, "");
  EXPECT_EQ(rows[3].problem, "not finished");
  EXPECT_NE(DescribeGridTable(outcome).find("FAILED"), std::string::npos);
}

}  // namespace
}  // namespace softmoe::experiments
