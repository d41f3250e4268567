// SPDX-License-Identifier: Apache-2.0
//
// Experiments as a user meets them: several that share the folder of a scale.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_select.h"
#include "experiments/run/run_folder.h"
#include "experiments/testing/grid_test_util.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// Rows that experiments build on and the micro grid lacks; star-1 is the third
// row of T6.
constexpr char kMoreRows[] = R"([[rows]]
id = "sparse-1"
label = "Sparse MoE"
paper_row = "sparse/k1"
[rows.config.router]
kind = "sparse"
mean_active_experts = 1
[[rows]]
id = "sparse-3"
label = "Sparse MoE"
paper_row = "sparse/k3"
[rows.config.router]
kind = "sparse"
mean_active_experts = 3
[[rows]]
id = "star-1"
label = "SoftMoE*"
paper_row = "softmoe_star/k1/a4"
[rows.config.router]
kind = "soft_fixed"
mean_active_experts = 1
expansion_factor = 4
tau = 1.1
[[rows]]
id = "star-2"
label = "SoftMoE*"
paper_row = "softmoe_star/k2/a2"
[rows.config.router]
kind = "soft_fixed"
mean_active_experts = 2
[[rows]]
id = "learned-2"
label = "SoftMoE"
paper_row = "softmoe/k2/a2"
[rows.config.router]
kind = "soft_learned"
mean_active_experts = 2
)";

class GridExperiment : public GridProgram {
 protected:
  void SetUp() override {
    GridProgram::SetUp();
    WriteGrid(MicroGrid(60, kMoreRows));
  }

  // The folder of the first run of an experiment's row.
  fs::path Folder(const std::string& experiment, const std::string& row) const {
    const auto grid =
        SelectGrid(experiment, (folder_ / "micro.toml").string(), {});
    for (const GridRun& run : grid.runs) {
      if (run.row.id == row) {
        return folder_ / "runs/micro" / RunFolderName(run);
      }
    }
    ADD_FAILURE() << experiment << " has no row " << row;
    return {};
  }
};

const Strings kScale = {"--scale", "micro.toml"};

Strings Words(Strings words, const Strings& more = {}) {
  words.insert(words.end(), kScale.begin(), kScale.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(GridExperiment, ASharedRunIsTrainedOnceWhoeverAsksFirst) {
  // tau is run first, but its folder has the name that main gives it.
  const fs::path shared = Folder("tau", "softmoe-star-1-tau-1.1");
  EXPECT_EQ(shared, Folder("main", "star-1"));
  EXPECT_TRUE(EndedWith(
      Grid(Words({"run", "tau"},
                 {"--rows", "softmoe-star-1-tau-1.1,softmoe-star-1-tau-1.3"})),
      0, "grid tau: 2 runs", "2 of 2 runs finished"));
  const auto written = fs::last_write_time(shared / "result.h5");
  EXPECT_TRUE(fs::exists(folder_ / "runs/micro/tau/report.html"));
  EXPECT_FALSE(fs::exists(folder_ / "runs/micro/report.html"));

  EXPECT_TRUE(EndedWith(Grid(Words({"status", "main"})), 0,
                        "1 of 8 runs are finished"));
  EXPECT_TRUE(
      EndedWith(Grid({"run", "micro.toml", "--rows", "star-1,sparse-1"}), 0,
                "2 runs", "1 finished", "2 of 2 runs finished"));
  EXPECT_EQ(fs::last_write_time(shared / "result.h5"), written);
  EXPECT_TRUE(fs::exists(folder_ / "runs/micro/report.html"));

  // Runs of another experiment in the folder are not stale. Main still measures
  // the sparse row, and needs its checkpoint for that.
  for (const auto& [command, count] :
       {std::pair(Words({"clean", "main"}), "2 could be deleted"),
        std::pair(Strings{"clean", "micro.toml"}, "3 could be deleted")}) {
    const auto clean = Grid(command);
    EXPECT_TRUE(EndedWith(clean, 0, count));
    EXPECT_FALSE(Says(clean.output, "FINISHED"));
  }

  // Reports on every experiment that has one of these runs.
  const auto all = Grid(Words({"run", "all"}, {"--rows", "star-1,sparse-1"}));
  EXPECT_TRUE(EndedWith(all, 0, "2 runs", "2 finished",
                        "Experiment main:", "Experiment tau:",
                        "Experiment jitter:", "Experiment compute:", "tokens/s",
                        "Active experts in every layer"));
  EXPECT_FALSE(Says(all.output, "Experiment throughput:"));
  EXPECT_TRUE(fs::exists(folder_ / "runs/micro/jitter/results.h5"));
  EXPECT_FALSE(fs::exists(folder_ / "runs/micro/throughput"));
}

// inference_tau cannot be read without its row; tau can, and keeps its runs.
TEST_F(GridExperiment, CleanKeepsTheRunsOfTheExperimentsThatCanBeRead) {
  EXPECT_TRUE(EndedWith(
      Grid(Words({"run", "tau"}, {"--rows", "softmoe-star-1-tau-1.3"})), 0));
  std::string fewer = kMoreRows;
  fewer.resize(fewer.rfind("[[rows]]"));
  WriteGrid(MicroGrid(60, fewer));
  EXPECT_TRUE(EndedWith(Grid(Words({"run", "inference_tau"})), 2,
                        "no row with paper_row"));
  // Nor do the seeds of this command matter.
  for (const Strings& command :
       {Strings{"clean", "micro.toml"},
        Strings{"clean", "micro.toml", "--seeds", "8"}}) {
    const auto clean = Grid(command);
    EXPECT_TRUE(EndedWith(clean, 0, "1 could be deleted",
                          "cannot be read, so its runs are listed as foreign: "
                          "experiment inference_tau: ",
                          "no row with paper_row"));
    EXPECT_FALSE(Says(clean.output, "FINISHED"));
  }
}

// An evaluation that one experiment asks for is made for all, since the
// checkpoint may be gone when another asks.
TEST_F(GridExperiment, EveryExperimentMeasuresWhatAnyNeeds) {
  EXPECT_TRUE(EndedWith(Grid(Words({"run", "main"}, {"--rows", "learned-2"})),
                        0, "1 of 1 runs finished"));
  const trainer::RunResult result = trainer::ReadRunResult(
      Folder("inference_tau", "learned-2") / "result.h5");
  ASSERT_TRUE(result.final_evaluations);
  EXPECT_EQ(result.final_evaluations->inference_tau.size(), 4u);
  EXPECT_EQ(result.final_evaluations->router_health.size(), 2u);
  EXPECT_TRUE(
      EndedWith(Grid(Words({"run", "inference_tau"})), 0, "1 finished"));
}

// A run trained without evaluations is measured later, while its checkpoint
// exists; otherwise a message says so.
TEST_F(GridExperiment, WhatIsLackingIsMeasuredOnTheCheckpoint) {
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--rows", "learned-2"}), 0));
  const fs::path folder = Folder("inference_tau", "learned-2");
  EXPECT_FALSE(trainer::ReadRunResult(folder / "result.h5").final_evaluations);
  const Strings clean = Words({"clean", "inference_tau"});
  EXPECT_TRUE(EndedWith(Grid(clean), 0, "nothing to delete"));
  EXPECT_TRUE(
      EndedWith(Grid(Words({"run", "inference_tau"})), 0, "1 of 1 runs"));
  EXPECT_TRUE(EndedWith(Grid(clean), 0, "1 could be deleted"));
  EXPECT_TRUE(trainer::ReadRunResult(folder / "result.h5").final_evaluations);

  EXPECT_TRUE(EndedWith(
      Grid({"run", "micro.toml", "--rows", "learned-2", "--out", "bare"}), 0));
  fs::remove(folder_ / "bare" / folder.filename() / "checkpoint.h5");
  EXPECT_TRUE(
      EndedWith(Grid(Words({"run", "inference_tau"}, {"--out", "bare"})), 0,
                "text/learned-2/seed7", "x0.5", "checkpoint is gone"));
}

TEST_F(GridExperiment, CheckpointsGoWhereTheGridSaysSo) {
  WriteGrid("[evaluations]\nkeep_checkpoint = false\n" +
            MicroGrid(60, kMoreRows));
  const Strings row = {"--rows", "sparse-1"};
  EXPECT_TRUE(
      EndedWith(Grid(Words({"run", "main", "--keep-checkpoints"}, row)), 0));
  const fs::path folder = Folder("main", "sparse-1");
  EXPECT_TRUE(fs::exists(folder / "checkpoint.h5"));
  EXPECT_TRUE(EndedWith(Grid(Words({"run", "main", "--out", "lean"}, row)), 0));
  EXPECT_EQ(FilesIn(folder_ / "lean" / folder.filename()),
            (Strings{"metrics.jsonl", "result.h5"}));
}

TEST_F(GridExperiment, PlansCountTrainings) {
  // Scores that are all but equal: their quadrature takes no time.
  const Strings flat = {"--set", "model.init_std=1e-30"};
  EXPECT_TRUE(EndedWith(
      Grid(Words({"plan", "all"}, flat)), 0,
      "20 trainings: 8 of main, 9 of tau, none of inference_tau, 3 of "));
  EXPECT_TRUE(EndedWith(Grid(Words({"plan", "tau", "--seeds", "x3"}, flat)), 0,
                        "30 trainings: 3 of main, 27 of tau"));
}

TEST_F(GridExperiment, UsageErrorsEndWithTwo) {
  const std::pair<Strings, Strings> kCases[] = {
      {{"plan", "tau"}, {"experiment 'tau' needs a scale", "--scale="}},
      {{"plan", "taus", "--scale=mini"}, {"did you mean 'tau'?"}},
      {{"plan", "tauu"}, {"did you mean 'tau'?"}},
      {{"plan", "mini", "--scale=mini"}, {"leave --scale out"}},
      {{"plan", "tau", "--scale=min"}, {"did you mean 'mini'?"}},
      {{"plan", "tau", "--scale=mini", "--seeds", "x0"}, {"--seeds x0"}},
      {{"plan", "tau", "--scale=mini", "--seeds", "x2,5"}, {"--seeds x2"}}};
  for (const auto& [arguments, texts] : kCases) {
    EXPECT_TRUE(EndedWith(Grid(arguments), 2, texts));
  }
  // Two experiments give one run different settings: the error names both
  // places.
  WriteGrid(MicroGrid(60, std::string(kMoreRows) + R"([[rows]]
id = "sparse-2-jitter-0.05"
label = "Sparse MoE"
[rows.config.router]
kind = "sparse"
mean_active_experts = 2
noise = "input_jitter"
noise_amplitude = 0.1
)"));
  EXPECT_TRUE(EndedWith(Grid(Words({"run", "jitter"})), 2, "jitter.toml:",
                        "micro.toml:", "noise_amplitude", "Rename"));
}

}  // namespace
}  // namespace softmoe::experiments
