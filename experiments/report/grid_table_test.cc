// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/grid_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

// The cell of row `row` under `title`.
std::string Cell(const GridTable& table, size_t row, const std::string& title) {
  const auto found = std::ranges::find(table.header, title);
  if (found == table.header.end()) return "no column " + title;
  return table.rows.at(row).cells.at(
      static_cast<size_t>(found - table.header.begin()));
}

TEST(GridTable, GroupsRowsByTheExpertsTheyUse) {
  const GridTable table = MakeGridTable(ExampleOutcome());
  ASSERT_EQ(table.rows.size(), 4u);
  // Infer-AE 1, 2, 1.75 and 2.25.
  EXPECT_EQ(Cell(table, 0, "experts"), "= 1");
  EXPECT_EQ(Cell(table, 1, "experts"), "<= 2");
  EXPECT_EQ(Cell(table, 1, "model"), "Sparse MoE");
  EXPECT_EQ(Cell(table, 1, "alpha"), "-");
  EXPECT_EQ(Cell(table, 2, "experts"), "<= 2");
  EXPECT_EQ(Cell(table, 2, "model"), "SoftMoE*");
  EXPECT_EQ(Cell(table, 2, "train AE"), "1.62");  // 1.625, to even
  EXPECT_EQ(Cell(table, 2, "infer AE"), "1.75");
  EXPECT_EQ(Cell(table, 2, "tau"), "1.174 c");
  EXPECT_EQ(Cell(table, 3, "experts"), "<= 3");
  EXPECT_EQ(Cell(table, 3, "unigram"), "5.1000");
  EXPECT_EQ(Cell(table, 3, "zero AE"), "0.0%");
  EXPECT_EQ(Cell(table, 3, "sd"), "no column sd");
  for (const GridTable::Row& row : table.rows) {
    EXPECT_EQ(row.cells.size(), table.header.size());
  }
}

// d_model 8, 3 layers, 8 experts of width 12, vocabulary 50; one expert active:
// 2*50*8 + 8 + 3*(2*8 + 4*64 + 8*8) + 3*1*(3*8*12) = 800 + 8 + 1008 + 864.
TEST(GridTable, CountsActiveParameters) {
  EXPECT_EQ(Cell(MakeGridTable(ExampleOutcome()), 0, "active"), "0.003M");
}

TEST(GridTable, SeedsGiveMeanAndDeviation) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  for (size_t i = 0; i < 3; ++i) {
    outcome.runs[i].result->final_validation.loss =
        3 + 0.1 * static_cast<double>(i);
  }
  const GridTable table = MakeGridTable(outcome);
  EXPECT_EQ(Cell(table, 0, "val loss"), "3.1000");
  EXPECT_EQ(Cell(table, 0, "sd"), "0.1000");
  EXPECT_EQ(Cell(table, 0, "seeds"), "3/3");
}

TEST(GridTable, WhatIsNotFinishedComesLastAndSaysSo) {
  GridOutcome outcome = ExampleOutcome();
  Fail(RunOf(outcome, "sparse-1"), "diverged");
  Interrupt(RunOf(outcome, "star-1.5"));
  const GridTable table = MakeGridTable(outcome);
  EXPECT_EQ(Cell(table, 0, "model"), "Sparse MoE");
  EXPECT_EQ(table.rows[0].problem, "");
  EXPECT_EQ(table.rows[2].problem, "FAILED");
  EXPECT_EQ(table.rows[2].cells.back(), "FAILED");
  EXPECT_EQ(Cell(table, 2, "experts"), "");
  EXPECT_EQ(Cell(table, 2, "val loss"), "");
  EXPECT_EQ(table.rows[3].problem, "not finished");
  EXPECT_NE(DescribeGridTable(outcome).find("FAILED"), std::string::npos);
}

TEST(GridTable, ShowsNoColumnThatNoRowHas) {
  GridOutcome outcome = ExampleOutcome();
  outcome.runs[0].result->unigram_loss = std::nan("");
  EXPECT_EQ(Cell(MakeGridTable(outcome), 0, "unigram"), "");
  for (RunOutcome& run : outcome.runs) {
    run.result->unigram_loss = std::nan("");
  }
  EXPECT_EQ(Cell(MakeGridTable(outcome), 0, "unigram"), "no column unigram");
  for (RunOutcome& run : outcome.runs) Interrupt(run);
  EXPECT_EQ(Cell(MakeGridTable(outcome), 0, "val loss"), "no column val loss");
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

}  // namespace
}  // namespace softmoe::experiments
