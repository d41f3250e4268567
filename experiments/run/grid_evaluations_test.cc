// SPDX-License-Identifier: Apache-2.0
//
// Evaluations that a grid asks for after training, and the fate of the
// checkpoints.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/testing/file_test_util.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_grid.h"
#include "experiments/testing/grid_test_util.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridEvaluations : public GridProgram {
 protected:
  void SetUp() override {
    GridProgram::SetUp();
    WriteGrid(MicroGrid(5));
    grid_ = Micro({"data.corpus=path:" + (folder_ / "text.txt").string()});
    all_ = {.inference_tau_factors = {0.5, 1, 2},
            .active_histogram = true,
            .router_health = true,
            .keep_checkpoint = false};
  }

  // Returns the outcome; lines_ holds what the user sees meanwhile.
  GridOutcome Run(const std::string& out,
                  const trainer::EvaluationPlan& evaluations) {
    for (GridRun& run : grid_.runs) run.evaluations = evaluations;
    GridRunOptions options;
    options.folder = folder_ / out;
    for (size_t r = 0; r < grid_.runs.size(); ++r) {
      options.selected.push_back(r);
    }
    testing::internal::CaptureStderr();
    GridOutcome outcome = RunGrid(grid_, options);
    lines_ = testing::internal::GetCapturedStderr();
    return outcome;
  }
  Strings Files(const std::string& out, size_t n) const {
    return FilesIn(folder_ / out / RunFolderName(grid_.runs[n]));
  }
  int Mentions(const std::string& text) const {
    int count = 0;
    for (size_t at = lines_.find(text); at != std::string::npos;
         at = lines_.find(text, at + 1)) {
      ++count;
    }
    return count;
  }

  experiments::Grid grid_;
  trainer::EvaluationPlan all_;
  std::string lines_;
};

TEST_F(GridEvaluations, AreMeasuredAndThenTheCheckpointsGo) {
  const GridOutcome outcome = Run("runs", all_);
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(Files("runs", n), (Strings{"metrics.jsonl", "result.h5"}));
    const trainer::RunResult& result = *outcome.runs[n].result;
    EXPECT_EQ(trainer::MissingEvaluations(all_, result), "");
    ASSERT_TRUE(result.final_evaluations.has_value());
    // The first row is sparse: it has no tau.
    EXPECT_EQ(result.final_evaluations->inference_tau.size(), n == 0 ? 0u : 3u);
    EXPECT_EQ(result.final_evaluations->router_health.size(), 2u);
  }
  Run("runs", all_);
  EXPECT_EQ(Mentions("was not measured"), 0) << lines_;
  EXPECT_EQ(Mentions("earlier"), 3) << lines_;
}

TEST_F(GridEvaluations, OfFinishedRunsTakeTheCheckpointsNotTheTraining) {
  const GridOutcome expected = Run("at once", all_);
  // Runs made without a list of evaluations.
  Run("later", {});
  const GridOutcome later = Run("later", all_);
  EXPECT_EQ(Mentions("step "), 0) << lines_;
  EXPECT_EQ(Mentions("was not measured"), 0) << lines_;
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    trainer::ExpectSameResult(*expected.runs[n].result, *later.runs[n].result);
    EXPECT_EQ(Files("later", n), (Strings{"metrics.jsonl", "result.h5"}));
  }
}

TEST_F(GridEvaluations, WhatCannotBeMeasuredAnyMoreIsSaidAndTheGridGoesOn) {
  const GridOutcome before =
      Run("runs", {.inference_tau_factors = {}, .keep_checkpoint = false});
  const GridOutcome outcome = Run("runs", all_);
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(outcome.runs[n].state, RunState::kFinished);
    trainer::ExpectSameResult(*before.runs[n].result, *outcome.runs[n].result);
    const std::string& id = grid_.runs[n].id;
    EXPECT_EQ(Mentions(id + (n == 0 ? " was not measured (router health): "
                                    : " was not measured (inference tau x0.5, "
                                      "x1, x2; router health): ")),
              1)
        << lines_;
  }
  EXPECT_EQ(Mentions("the checkpoint is gone; delete the result"), 3) << lines_;

  // The suggested remedy works.
  fs::remove(folder_ / "runs" / RunFolderName(grid_.runs[1]) / "result.h5");
  const GridOutcome again = Run("runs", all_);
  EXPECT_EQ(trainer::MissingEvaluations(all_, *again.runs[1].result), "");
  EXPECT_EQ(Mentions("was not measured"), 2) << lines_;
}

}  // namespace
}  // namespace softmoe::experiments
