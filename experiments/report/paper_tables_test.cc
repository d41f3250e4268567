// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/paper_tables.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "experiments/grids/experiment.h"
#include "experiments/grids/grid_select.h"
#include "experiments/report/results_document.h"
#include "experiments/testing/report_test_util.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::experiments {
namespace {

using golden::Paper;
using Texts = std::vector<std::string>;

std::vector<JudgedResults> JudgedOf(const GridOutcome& outcome) {
  std::vector<JudgedResults> judged;
  for (const std::string& variant : Variants(outcome.grid)) {
    JudgedResults& one = judged.emplace_back();
    one.variant = variant;
    one.file = ResultsName(outcome.grid, variant);
    one.results = ResultsDocument(outcome, variant, Paper());
    one.verdicts = golden::Judge(one.results, Paper());
  }
  return judged;
}

std::vector<PaperCell> CellsOf(const GridOutcome& outcome) {
  return PaperCells(outcome, JudgedOf(outcome), Paper());
}

GridOutcome OutcomeOf(const Grid& grid, bool finished) {
  GridOutcome outcome;
  outcome.grid = grid;
  for (const GridRun& run : grid.runs) {
    RunOutcome& out = outcome.runs.emplace_back();
    out.run = run;
    if (!finished) continue;
    out.state = RunState::kFinished;
    out.result = ExampleResult(run);
  }
  return outcome;
}

// The index of the line of `table` on which the paper's `label` has `paper` in
// the column `heading`; the number of lines if there is none.
size_t LineOf(const EvaluationTable& table, const std::string& label,
              const std::string& heading, const std::string& paper) {
  const auto column = static_cast<size_t>(
      std::ranges::find(table.header, heading) - table.header.begin());
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (table.rows[r][0] == label && table.rows[r][1] == "paper" &&
        table.rows[r].at(column) == paper) {
      return r;
    }
  }
  return table.rows.size();
}

const PaperCell& Find(const std::vector<PaperCell>& cells,
                      const std::string& table, const std::string& row,
                      const std::string& column) {
  static const PaperCell kNone;
  for (const PaperCell& cell : cells) {
    if (cell.table == table && cell.row == row && cell.column == column) {
      return cell;
    }
  }
  ADD_FAILURE() << "no cell " << table << " " << row << " " << column;
  return kNone;
}

using Place = std::array<std::string, 3>;

// Collects the cells of the paper that `shown` has where they belong. The
// paper's lines must be its rows in order, each with a verdict or reason under
// it.
void CollectPlaces(const EvaluationTable& shown, const golden::Table& table,
                   std::set<Place>* places) {
  size_t line = 0;
  for (const golden::Row& row : table.rows) {
    ASSERT_LT(line + 1, shown.rows.size()) << row.id;
    const Texts& paper = shown.rows[line];
    ASSERT_EQ(paper[1], "paper") << row.id;
    ASSERT_TRUE(shown.rows[line + 1][1].starts_with("here")) << row.id;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const golden::Cell& cell = row.cells[c];
      const std::string text = cell.empty() ? "-" : cell.text;
      EXPECT_EQ(paper[2 + c], text + (cell.bold ? "*" : "")) << row.id;
      places->insert({table.id, row.id, table.columns[c].id});
    }
    ++line;
    while (line < shown.rows.size() && shown.rows[line][1] != "paper") {
      EXPECT_FALSE(shown.rows[line].back().empty()) << row.id;
      ++line;
    }
  }
  EXPECT_EQ(line, shown.rows.size()) << table.id;
}

// The 402 cells of T1 and T3 to T8, of which 16 are printed as "-", and the six
// of T2.
TEST(PaperCells, EachOfThePapersHasAPlaceInSomeExperiment) {
  std::set<Place> printed;
  for (const golden::Table& table : Paper().tables) {
    if (table.id == "allocation") continue;  // figures, without numbers
    for (const golden::Row& row : table.rows) {
      for (const golden::Column& column : table.columns) {
        printed.insert({table.id, row.id, column.id});
      }
    }
  }
  ASSERT_EQ(printed.size(), 408u);
  for (const bool finished : {false, true}) {
    std::set<Place> places;
    for (const Grid& grid : LoadExperiments(GridPath("paper"), {})) {
      if (IsOwnExperiment(grid.experiment)) continue;
      const std::vector<PaperCell> cells = CellsOf(OutcomeOf(grid, finished));
      for (const PaperCell& cell : cells) {
        EXPECT_FALSE(cell.verdict.empty()) << cell.row << " " << cell.column;
        EXPECT_TRUE(cell.verdict != "not judged" || !cell.reason.empty())
            << cell.row << " " << cell.column;
      }
      for (const EvaluationTable& shown : PaperTables(grid, cells, Paper())) {
        const auto table = std::ranges::find(Paper().tables, shown.title,
                                             &golden::Table::title);
        ASSERT_NE(table, Paper().tables.end()) << shown.title;
        CollectPlaces(shown, *table, &places);
      }
    }
    EXPECT_EQ(places, printed);
  }
}

// 12.7062 and 3.18245: the 97.5 % quantiles of Student's t with 1 and 3 degrees
// of freedom, from tables.
TEST(PaperCells, IntervalsAreStudentsOverTheSeeds) {
  golden::Cell cell = {.text = "1", .value = 1, .deviation = 1.0};
  cell.runs = 2;
  EXPECT_NEAR(HalfWidth(cell).value(), 12.7062 / std::sqrt(2.0), 1e-3);
  cell.runs = 4;
  EXPECT_NEAR(HalfWidth(cell).value(), 3.18245 / 2, 1e-4);
  cell.runs = 1;
  EXPECT_FALSE(HalfWidth(cell).has_value());
}

JudgedResults Judged(golden::Document results) {
  golden::Verdicts verdicts = golden::Judge(results, Paper());
  return {"", "results.h5", std::move(results), std::move(verdicts)};
}

TEST(PaperCells, AreJudgedAndShownAsMeanWithInterval) {
  const std::vector<JudgedResults> judged = {
      Judged(golden::Reproduction(/*runs=*/4, /*spread=*/0.1))};
  const std::vector<PaperCell> cells = PaperCells({}, judged, Paper());
  const PaperCell& loss =
      Find(cells, "main_results", "owt/softmoe/k1.5/a2", "val_loss");
  EXPECT_EQ(loss.paper, "2.76");
  // 3.18245 x 0.003 / 2 = 0.0048.
  EXPECT_EQ(loss.ours, "2.760 ± 0.005");
  EXPECT_EQ(loss.runs, 4);
  EXPECT_EQ(loss.verdict, "PASS");
  // A setting is exact, and the sparse router's count the same in all runs.
  EXPECT_EQ(
      Find(cells, "main_results", "owt/softmoe/k1.5/a2", "mean_active_experts")
          .ours,
      "1.5");
  EXPECT_EQ(Find(cells, "main_results", "owt/sparse/k2", "infer_ae").ours, "2");
  const EvaluationTable every = CellTable(cells);
  ASSERT_EQ(every.rows.size(), cells.size());
  for (const Texts& row : every.rows)
    ASSERT_EQ(row.size(), every.header.size());
}

TEST(PaperTables, ANumberStandsUnderItsOwn) {
  golden::Document results = golden::Reproduction(4, 0.1);
  golden::Cell& loss = golden::At(&results, "c4/softmoe/k2/a2", "val_loss");
  golden::SetValue(&loss, 3.2);
  loss.runs = 4;
  loss.deviation = 0.003;
  const std::vector<PaperCell> cells =
      PaperCells({}, {Judged(std::move(results))}, Paper());
  const EvaluationTable table = PaperTables({}, cells, Paper()).front();
  ASSERT_EQ(
      table.header,
      (Texts{"model", "", "k", "alpha", "Train-AE", "Infer-AE", "Active-Param",
             "PIQA", "HELLA", "ARC-E", "Loss", "#Expert", "seeds", "verdict"}));
  const size_t line = LineOf(table, "C4, SoftMoE", "PIQA", "72.03*");
  ASSERT_LT(line + 1, table.rows.size());
  EXPECT_EQ(table.rows[line][11], "<=4");
  const Texts& ours = table.rows[line + 1];
  EXPECT_EQ(ours[0], "");
  EXPECT_EQ(ours[1], "here");
  EXPECT_EQ(ours[10], "3.200 ± 0.005");
  EXPECT_EQ(ours[12], "4");
  EXPECT_TRUE(ours[13].starts_with("FAIL: Loss; ")) << ours[13];
  EXPECT_TRUE(ours[13].ends_with("else PASS")) << ours[13];
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (r == line + 1) continue;
    EXPECT_NE(table.rows[r][10], ours[10]) << r;
  }
}

TEST(PaperTables, ShowEachReadingOfTauAndSparseRowsOnce) {
  const GridOutcome outcome = ExampleOutcome({.both_variants = true});
  const EvaluationTable table =
      PaperTables(outcome.grid, CellsOf(outcome), Paper()).front();
  const auto readings = [&](const char* label, const char* heading,
                            const char* paper) {
    Texts names;
    for (size_t r = LineOf(table, label, heading, paper) + 1;
         r < table.rows.size() && table.rows[r][1] != "paper"; ++r) {
      names.push_back(table.rows[r][1]);
    }
    return names;
  };
  EXPECT_EQ(readings("OWT, Sparse MoE", "PIQA", "62.40"), Texts{"here"});
  EXPECT_EQ(readings("OWT, SoftMoE", "Loss", "2.74*"),
            (Texts{"here, tau paper", "here, tau calibrated"}));
  // Rows that the grid lacks say so.
  const size_t c4 = LineOf(table, "C4, Sparse MoE", "Loss", "2.27");
  EXPECT_EQ(table.rows.at(c4 + 1).back(), "this grid has no such row");
}

TEST(PaperCells, SayWhyThereIsNoNumber) {
  GridOutcome outcome = ExampleOutcome({.paper_sizes = true});
  outcome.grid.table = "throughput";
  const auto reason = [&](const char* column) {
    return Find(CellsOf(outcome), "throughput", "owt/sparse/k2", column).reason;
  };
  EXPECT_EQ(reason("gpu_utilization"), "not measured");
  EXPECT_EQ(reason("throughput"),
            "not measured");  // per GPU, and there is none
  EXPECT_EQ(reason("iteration_time"), "recorded, not judged");
  Interrupt(RunOf(outcome, "sparse-2"));
  EXPECT_EQ(reason("iteration_time"), "not run");
  Fail(RunOf(outcome, "sparse-2"), "a NaN");
  EXPECT_EQ(reason("iteration_time"),
            "a run diverged, so the row gives no number");
}

// Top-2 always activates two experts, which is no evidence about its runs.
TEST(PaperCells, SparseRowsActivateWhatTheyMust) {
  GridOutcome outcome =
      ExampleOutcome({.seeds = {1, 2, 3}, .paper_sizes = true});
  outcome.grid.table = "throughput";
  const auto cells = CellsOf(outcome);
  const PaperCell& cell =
      Find(cells, "throughput", "owt/sparse/k2", "train_ae");
  EXPECT_EQ(cell.ours, "2");
  EXPECT_EQ(cell.verdict, "PASS") << cell.reason;
}

// Runs take 12.5 s on eight GPUs.
TEST(PaperCells, HoursOfGpusAreThoseOfTheRuns) {
  GridOutcome outcome = ExampleOutcome({.paper_sizes = true});
  outcome.grid.table = "compute";
  for (RunOutcome& run : outcome.runs) run.result->devices = 8;
  const auto cells = CellsOf(outcome);
  const auto ours = [&](const char* column) {
    return Find(cells, "compute", "owt/sparse/k2", column).ours;
  };
  EXPECT_EQ(ours("gpus"), "8");
  EXPECT_EQ(ours("train_time"), "0.00");
  EXPECT_EQ(ours("gpu_hours"), "0.03");
}

// Seeds may run on different numbers of GPUs, so each has its own hours.
TEST(PaperCells, EverySeedCountsItsOwnGpus) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}, .paper_sizes = true});
  for (RunOutcome& run : outcome.runs) {
    const bool first = run.run.seed == 1;
    run.result->devices = first ? 8 : 4;
    run.result->seconds = 3600 * (first ? 1 : 2);  // 8 GPU hours in any case
    for (auto& step : run.result->steps) step.seconds = first ? 0.25 : 0.5;
  }
  const auto ours = [&](const char* table, const char* column) {
    outcome.grid.table = table;
    return Find(CellsOf(outcome), table, "owt/sparse/k2", column).ours;
  };
  EXPECT_EQ(ours("compute", "gpu_hours"), "8");
  const TrainingConfig& training = outcome.runs[0].run.config.training;
  const double tokens =
      static_cast<double>(training.global_batch_sequences *
                          outcome.runs[0].run.config.model.sequence_length);
  // The second run took half as many steps a second, on half as many GPUs.
  EXPECT_EQ(ours("throughput", "throughput"), fmt::format("{:g}", tokens / 2));
  // A run on the CPU, or on an unknown number of GPUs, has no throughput.
  RunOf(outcome, "sparse-2").result->devices = 0;
  EXPECT_EQ(ours("throughput", "throughput"), "");
  EXPECT_EQ(ours("compute", "gpu_hours"), "");
  EXPECT_NE(ours("compute", "train_time"), "");
}

TEST(PaperCells, TheModelsSizeIsJudgedByItsConfiguration) {
  const GridOutcome outcome = ExampleOutcome({.paper_sizes = true});
  const std::vector<PaperCell> cells = CellsOf(outcome);
  for (const char* column :
       {"total_params", "blocks", "heads", "experts", "d_model", "d_ffn"}) {
    const PaperCell& cell = Find(cells, "model_size", "all", column);
    EXPECT_EQ(cell.ours, cell.paper) << column;
    EXPECT_EQ(cell.verdict, "PASS") << column << ": " << cell.reason;
  }
  EXPECT_EQ(Find(CellsOf(ExampleOutcome()), "model_size", "all", "blocks").ours,
            "3");
}

}  // namespace
}  // namespace softmoe::experiments
