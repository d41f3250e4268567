// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/regime_results.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/experiment.h"
#include "experiments/report/paper_figures.h"
#include "experiments/report/plot.h"
#include "experiments/report/report_csv.h"
#include "experiments/report/report_curves.h"
#include "experiments/report/report_html.h"
#include "experiments/report/report_tables.h"
#include "experiments/report/row_summary.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/report_test_util.h"
#include "golden/testing/miniature_test_util.h"

namespace softmoe::experiments {
namespace {

using golden::RegimeStatus;

// How far the made-up soft rows lie above the sparse curve at a step: the gap
// closes.
double Gap(int64_t step) { return 0.5 / static_cast<double>(step); }

// All runs of the shipped experiment, finished, with the final numbers of
// golden::MadeUpRegime(effect). In training, soft rows have 2 active experts
// and lie Gap above Sparse-2 of their seed.
GridOutcome MadeUp(double effect) {
  std::map<std::string, golden::MiniatureRun> made_up;
  for (const golden::MiniatureRun& run : golden::MadeUpRegime(effect)) {
    made_up[run.corpus + "/" + run.row + "/seed" + std::to_string(run.seed)] =
        run;
  }
  GridOutcome outcome;
  outcome.grid =
      LoadExperiment("regime", RunfilePath("experiments/grids/mini.toml"), {});
  for (const GridRun& run : outcome.grid.runs) {
    const golden::MiniatureRun& from = made_up.at(run.id);
    RunOutcome finished;
    finished.run = run;
    finished.state = RunState::kFinished;
    trainer::RunResult result = ExampleResult(run);
    result.final_validation.loss = from.loss;
    result.final_validation.active_experts = from.infer_ae;
    result.train_ae = from.train_ae;
    const bool sparse = run.config.router.kind == RouterKind::kSparse;
    const trainer::StepRecord first = result.steps.front();
    result.steps.clear();
    for (int64_t step = 1; step <= 200; ++step) {
      trainer::StepRecord& record = result.steps.emplace_back(first);
      record.step = step;
      record.active_experts =
          sparse ? run.config.router.mean_active_experts : 2;
      record.loss = 3 + std::sin(static_cast<double>(run.seed)) +
                    0.1 / record.active_experts + (sparse ? 0 : Gap(step));
    }
    finished.result = std::move(result);
    outcome.runs.push_back(std::move(finished));
  }
  return outcome;
}

const golden::RegimeEstimate& Primary(const RegimeResults& judged) {
  return golden::EstimateOf(judged.verdicts, "primary");
}

TEST(JudgeRegimeRuns, JudgesWhatTheRunsSay) {
  EXPECT_EQ(Primary(*JudgeRegimeRuns(MadeUp(-0.02))).status,
            RegimeStatus::kSuperior);
  const GridOutcome outcome = MadeUp(0.05);
  const RegimeResults judged = *JudgeRegimeRuns(outcome);
  EXPECT_EQ(Primary(judged).status, RegimeStatus::kInferior);
  EXPECT_EQ(judged.runs.size(), outcome.runs.size());
  EXPECT_TRUE(judged.verdicts.missing.empty());
  EXPECT_NE(RegimeText(judged).find("INFERIOR"), std::string::npos);
  const ReportPage page = {"", "", {RegimePart(judged)}};
  EXPECT_NE(HtmlOf(page, {}).find("<pre>"), std::string::npos);
  EXPECT_EQ(RegimeText(judged), RegimeText(*JudgeRegimeRuns(outcome)));
}

// It is not tested on the eleven seeds that did not diverge.
TEST(JudgeRegimeRuns, ARowOfWhichARunDivergedIsNotTestable) {
  GridOutcome outcome = MadeUp(-0.02);
  for (RunOutcome& run : outcome.runs) {
    if (run.run.id == "gcide/regime-1.5/seed1238") Fail(run, "nan at step 3");
  }
  const RegimeResults judged = *JudgeRegimeRuns(outcome);
  EXPECT_TRUE(judged.verdicts.missing.empty());
  EXPECT_EQ(Primary(judged).status, RegimeStatus::kNotTestable);
  EXPECT_EQ(Primary(judged).reason,
            "run gcide/regime-1.5/seed1238 gave no number");
}

TEST(JudgeRegimeRuns, SaysWhatIsMissingAndWhatWasNotPlanned) {
  GridOutcome outcome = MadeUp(0);
  Interrupt(outcome.runs.front());
  RegimeResults judged = *JudgeRegimeRuns(outcome);
  EXPECT_EQ(Primary(judged).status, RegimeStatus::kInterim);
  EXPECT_EQ(judged.verdicts.missing,
            std::vector<std::string>{outcome.runs.front().run.id});
  outcome = MadeUp(0);
  RunOutcome extra = outcome.runs.front();
  extra.run.seed = 99;
  extra.run.id = "gcide/sparse-1/seed99";
  outcome.runs.push_back(extra);
  judged = *JudgeRegimeRuns(outcome);
  EXPECT_EQ(judged.unplanned, std::vector<std::string>{extra.run.id});
  EXPECT_NE(RegimeText(judged).find("not judged: gcide/sparse-1/seed99"),
            std::string::npos);
}

// Other grids, settings and scales are not this experiment.
TEST(JudgeRegimeRuns, IsOfTheExperimentAsItIs) {
  GridOutcome outcome = MadeUp(0);
  outcome.grid.overrides = {"runtime.threads=1"};
  EXPECT_TRUE(JudgeRegimeRuns(outcome).has_value());
  outcome.grid.overrides = {"training.steps=9"};
  EXPECT_FALSE(JudgeRegimeRuns(outcome).has_value());
  EXPECT_TRUE(DifferencesOverSteps(outcome).empty());
  outcome = MadeUp(0);
  outcome.grid.scale_grid = "own";
  EXPECT_FALSE(JudgeRegimeRuns(outcome).has_value());
  EXPECT_FALSE(JudgeRegimeRuns(ExampleOutcome()).has_value());
}

// Whatever pilots yield, tables of rows, curves and figures stay the same.
TEST(JudgedRows, AreWithoutPilots) {
  const GridOutcome outcome = MadeUp(-0.02);
  GridOutcome other = outcome;
  GridOutcome pilots = outcome;
  pilots.runs.clear();
  for (RunOutcome& run : other.runs) {
    if (run.run.seed != 7001 && run.run.seed != 7002) continue;
    run.result->final_validation.loss += 1;
    for (trainer::StepRecord& step : run.result->steps) step.loss += 1;
    pilots.runs.push_back(run);
  }
  ASSERT_EQ(pilots.runs.size(), 8u);
  const GridTable table = MakeGridTable(other);
  EXPECT_EQ(table.rows.size(), outcome.grid.rows.size());
  EXPECT_TRUE(Says(table.legend, "Pilots, which are never judged, are left"));
  EXPECT_EQ(DescribeGridTable(other), DescribeGridTable(outcome));
  const auto drawn = [](const GridOutcome& of) {
    return PlotCsv(MakeCurves(of).at(1).plots.front());
  };
  EXPECT_TRUE(Says(drawn(other), "regime-1.5"));
  EXPECT_EQ(drawn(other), drawn(outcome));
  const auto figures = [](const GridOutcome& of) {
    std::vector<std::string> points;
    for (const Figure& figure : PaperFigures(of)) {
      for (const Plot& plot : figure.plots) points.push_back(PlotCsv(plot));
    }
    return points;
  };
  EXPECT_FALSE(figures(other).empty());
  EXPECT_EQ(figures(other), figures(outcome));
  for (const RowSummary& row : JudgedRows(other)) {
    EXPECT_EQ(row.runs.front()->run.seed, 1234) << row.row->id;
    EXPECT_NE(row.runs.back()->run.seed / 1000, 7) << row.row->id;
  }
  // A user who trains only pilots sees them.
  EXPECT_EQ(MakeGridTable(pilots).rows.size(), 4u);
  EXPECT_FALSE(Says(MakeGridTable(pilots).legend, "Pilots"));
  const std::string left_out = "Pilots, which are never judged, are left out. ";
  EXPECT_TRUE(Says(MakeCurves(other).at(1).caption, left_out));
  EXPECT_TRUE(Says(PaperFigures(other).front().caption, left_out));
  for (const auto& make : {MakeCurves, PaperFigures}) {
    for (const Figure& figure : make(pilots)) {
      EXPECT_FALSE(Says(figure.caption, "Pilots")) << figure.title;
    }
  }
}

TEST(DifferencesOverSteps, FollowTheRowsOfASeed) {
  const GridOutcome outcome = MadeUp(0);
  const std::vector<DifferenceLine> lines = DifferencesOverSteps(outcome);
  ASSERT_EQ(lines.size(), 8u);  // primary, and the rows that are not sparse
  EXPECT_EQ(lines[0].row, "primary");
  const size_t points = ThinnedSteps(outcome.runs.front().result->steps).size();
  EXPECT_EQ(lines[0].seeds.size(), 12u);
  for (const DifferenceLine& line : lines) {
    EXPECT_EQ(line.points.back().step, 200);
    EXPECT_EQ(line.points.size(), points);
    for (const DifferencePoint& point : line.points) {
      EXPECT_NEAR(point.active, 2, 1e-12) << line.row;
      // The seed effect cancels, and with it all scatter.
      EXPECT_NEAR(point.linear.estimate, Gap(point.step), 1e-12) << line.row;
      EXPECT_NEAR(point.linear.interval.high - point.linear.interval.low, 0,
                  1e-12);
      // The curve is 0.1 / k, which the smooth reading finds.
      EXPECT_NEAR(point.smooth.estimate, Gap(point.step), 1e-6) << line.row;
    }
  }
  const std::string csv = DifferencesCsv(lines);
  EXPECT_EQ(static_cast<size_t>(std::ranges::count(csv, '\n')), 1 + 8 * points);
  EXPECT_NE(csv.find("\nregime-1.5-quiet,200,4,"), std::string::npos);
  // Thinned steps, as in a record, give the same.
  GridOutcome thinned = outcome;
  for (RunOutcome& run : thinned.runs) {
    run.result->steps = ThinnedSteps(run.result->steps);
  }
  EXPECT_EQ(DifferencesCsv(DifferencesOverSteps(thinned)), csv);
  const Plot plot = MakeCurves(outcome).front().plots.front();
  EXPECT_EQ(plot.id, "differences");
  EXPECT_EQ(plot.series.size(), 8u + 1);
  const Series& primary = plot.series.front();
  EXPECT_GE(primary.x.front(), 20);
  ASSERT_EQ(primary.low.size(), primary.x.size());
  const golden::RegimeReading last =
      DifferencesOverSteps(outcome).front().points.back().linear;
  EXPECT_EQ(primary.y.back(), last.estimate);
  EXPECT_EQ(primary.low.back(), last.interval.low);
  EXPECT_EQ(primary.high.back(), last.interval.high);
}

TEST(DifferencesOverSteps, LeaveOutWhatHasNoCurve) {
  GridOutcome outcome = MadeUp(0);
  for (RunOutcome& run : outcome.runs) {
    // Pilots are excluded, and so are seeds that lack a sparse row.
    if (run.run.id == "gcide/sparse-3/seed1240") Interrupt(run);
    if (run.run.row.id == "regime-1.5-T1") {
      // Fewer active experts than any sparse row.
      run.result->steps.front().active_experts = 0.9;
    }
    if (run.run.seed == 7001) run.result->steps.back().loss = 1e9;
  }
  for (const DifferenceLine& line : DifferencesOverSteps(outcome)) {
    EXPECT_EQ(std::ranges::count(line.seeds, 1240), 0) << line.row;
    EXPECT_EQ(line.points.front().step, line.row == "regime-1.5-T1" ? 2 : 1);
    EXPECT_LT(line.points.back().linear.estimate, 1);
  }
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id == "sparse-1") Interrupt(run);
  }
  EXPECT_TRUE(DifferencesOverSteps(outcome).empty());
}

// A scale's file may give one row other steps than the rest.
TEST(DifferencesOverSteps, CompareRowsOfTheSameSteps) {
  GridOutcome outcome = MadeUp(0);
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id == "regime-1.5-quiet" ||
        run.run.id == "gcide/sparse-4/seed1235") {
      run.result->steps.resize(30);
    }
  }
  const std::vector<DifferenceLine> lines = DifferencesOverSteps(outcome);
  EXPECT_EQ(lines.size(), 7u);
  for (const DifferenceLine& line : lines) {
    EXPECT_NE(line.row, "regime-1.5-quiet");
    EXPECT_EQ(std::ranges::count(line.seeds, 1235), 0) << line.row;
    EXPECT_EQ(line.points.back().step, 200) << line.row;
  }
}

}  // namespace
}  // namespace softmoe::experiments
