// SPDX-License-Identifier: Apache-2.0
//
// grid_main_test.cc runs whole grids.
#include "experiments/run/grid_requirements.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/text/text_table.h"
#include "experiments/grids/experiment.h"
#include "experiments/grids/grid_select.h"
#include "experiments/plan/grid_estimate.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_grid.h"
#include "experiments/run/run_record.h"
#include "experiments/run/slurm_launch.h"
#include "experiments/testing/grid_test_util.h"
#include "kernels/simt/device/device.h"
#include "trainer/run/resources.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/tokens/prepare.h"

namespace softmoe::experiments {
namespace {

// While it lives, children that ask for a device find none.
struct NoDevice {
  NoDevice() { Fail(1); }
  ~NoDevice() { Fail(1 << 30); }  // a call that never comes
  static void Fail(int call) {
    simt::FailCall("cudaGetDeviceCount", call, 100);  // cudaErrorNoDevice
  }
};

TEST(DiskBytesStillNeeded, CountsOneSecondCheckpointForAllRuns) {
  RunOutcome small, large;
  small.run.config.model.d_ffn = 64;
  large.run.config.model.d_ffn = 128;
  small.folder = large.folder = FreshFolder("disk_empty");
  const auto s = trainer::EstimateResources(small.run.config);
  const auto l = trainer::EstimateResources(large.run.config);
  ASSERT_LT(s.checkpoint_bytes, l.checkpoint_bytes);
  EXPECT_EQ(DiskBytesStillNeeded({}, 1), 0);
  EXPECT_EQ(DiskBytesStillNeeded({small}, 1), s.disk_bytes);
  EXPECT_EQ(DiskBytesStillNeeded({small, large}, 1),
            s.disk_bytes - s.checkpoint_bytes + l.disk_bytes);
  small.state = RunState::kFinished;
  EXPECT_EQ(DiskBytesStillNeeded({small, large}, 1), l.disk_bytes);
}

// Three runs whose checkpoints are deleted: only as many of the larger ones
// count as can exist at a time.
TEST(DiskBytesStillNeeded, CountsTheLargestOfThoseSideBySide) {
  std::vector<RunOutcome> runs(3);
  std::vector<int64_t> checkpoints;
  int64_t lasting = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].run.config.model.d_ffn = 64 << i;
    runs[i].run.evaluations.keep_checkpoint = false;
    runs[i].folder = FreshFolder("disk_jobs");
    const auto need = trainer::EstimateResources(runs[i].run.config);
    checkpoints.push_back(2 * need.checkpoint_bytes);
    lasting += need.disk_bytes - checkpoints.back();
  }
  ASSERT_LT(checkpoints[0], checkpoints[1]);
  ASSERT_LT(checkpoints[1], checkpoints[2]);
  const int64_t one = lasting + checkpoints[2], two = one + checkpoints[1],
                all = two + checkpoints[0];
  EXPECT_EQ(DiskBytesStillNeeded(runs, 1), one);
  EXPECT_EQ(DiskBytesStillNeeded(runs, 2), two);
  EXPECT_EQ(DiskBytesStillNeeded(runs, 3), all);
  EXPECT_EQ(DiskBytesStillNeeded(runs, 4), all);
}

TEST(DiskBytesStillNeeded, WhatIsThereIsNotWrittenAgain) {
  RunOutcome run;
  run.state = RunState::kInterrupted;
  run.folder = FreshFolder("disk_there");
  const int64_t all = DiskBytesStillNeeded({run}, 1);
  WriteFileAtomically(run.folder / "checkpoint.h5", std::string(1000, 'x'));
  WriteFileAtomically(run.folder / "metrics.jsonl", std::string(200, 'x'));
  WriteFileAtomically(run.folder / "notes.txt", std::string(50, 'x'));
  EXPECT_EQ(DiskBytesStillNeeded({run}, 1), all - 1200);
}

// Only the running run's checkpoints exist, besides what was there before.
TEST(DiskBytesStillNeeded, CheckpointsThatGoCountOnce) {
  RunOutcome small, large;
  small.run.config.model.d_ffn = 64;
  large.run.config.model.d_ffn = 128;
  small.run.evaluations.keep_checkpoint = false;
  large.run.evaluations.keep_checkpoint = false;
  small.folder = large.folder = FreshFolder("disk_gone");
  const auto s = trainer::EstimateResources(small.run.config);
  const auto l = trainer::EstimateResources(large.run.config);
  EXPECT_EQ(DiskBytesStillNeeded({small}, 1), s.disk_bytes);
  EXPECT_EQ(DiskBytesStillNeeded({small, large}, 1),
            s.disk_bytes - 2 * s.checkpoint_bytes + l.disk_bytes);
  large.folder = FreshFolder("disk_there_and_gone");
  WriteFileAtomically(large.folder / "checkpoint.h5", std::string(1000, 'x'));
  EXPECT_EQ(DiskBytesStillNeeded({large}, 1), l.disk_bytes - 1000);
}

// This machine's disk does not hold a petabyte per run.
TEST(RunGrid, RefusesAGridThatTheDiskCannotHold) {
  Grid grid = LoadGrid(GridPath("smoke"), {"data.corpus=path:missing.txt"});
  for (GridRun& run : grid.runs) {
    run.config.model.d_model = 1 << 16;
    run.config.model.d_ffn = 1 << 18;
    run.config.model.num_experts = 1 << 12;
  }
  GridRunOptions options;
  options.folder = FreshFolder("disk_small");
  options.quiet = true;
  for (size_t r = 0; r < grid.runs.size(); ++r) options.selected.push_back(r);
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { RunGrid(grid, options); }),
                   "PiB", "--out"));
  EXPECT_TRUE(FilesIn(options.folder).empty());
}

// A task of Slurm trains the seeds of its row one after the other; processes of
// an mpirun train side by side.
TEST(RunGrid, CountsTheRunsThatAreAtWorkAtATime) {
  Grid grid =
      LoadGrid(GridPath("smoke"), {"data.corpus=path:missing.txt"}, {1, 2, 3});
  GridRunOptions options;
  options.folder = FreshFolder("disk_at_work");
  options.quiet = true;
  std::vector<RunOutcome> runs;
  for (size_t r = 0; r < grid.runs.size(); ++r) {
    grid.runs[r].config.model.d_model = 1 << 16;
    grid.runs[r].config.model.d_ffn = 1 << 18;
    grid.runs[r].config.model.num_experts = 1 << 12;
    runs.emplace_back().run = grid.runs[r];
    options.selected.push_back(r);
  }
  const auto need = [&](int64_t jobs) {
    return "will write " + FormatBytes(DiskBytesStillNeeded(runs, jobs));
  };
  ASSERT_NE(need(9), need(27));
  const std::string path = ::getenv("PATH");
  const std::filesystem::path bin = FreshFolder("at_work_bin");
  for (const char* name : {"sbatch", "squeue"}) {
    WriteFileAtomically(bin / name, "#!/bin/sh\n");
    std::filesystem::permissions(bin / name, std::filesystem::perms::owner_all);
  }
  ::setenv("PATH", (bin.string() + ":" + path).c_str(), 1);
  const std::string slurm = MessageOf<EnvironmentError>([&] {
    RunOnSlurm(grid, {.run = options, .place = {.folder = options.folder}});
  });
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(Says(slurm, need(9)));
  EXPECT_FALSE(Says(slurm, "--jobs"));
  options.processes_at_work = 4;
  const std::string mpi =
      MessageOf<EnvironmentError>([&] { RunGrid(grid, options); });
  EXPECT_TRUE(Says(mpi, need(4)));
  EXPECT_FALSE(Says(mpi, "--jobs"));
  options.processes_at_work = 1;
  options.jobs = 2;
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { RunGrid(grid, options); }),
                   need(2), "fewer --jobs"));
}

// The tasks would each end with this error.
TEST(RunOnSlurm, RefusesAPrecisionInWhichItsTasksDoNotTrain) {
  const Grid grid =
      LoadGrid(GridPath("smoke"),
               {"training.precision=bf16", "data.corpus=path:missing.txt"});
  GridRunOptions options;
  options.folder = FreshFolder("slurm_precision");
  options.quiet = true;
  options.selected = {0};
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] {
                     RunOnSlurm(grid, {.run = options,
                                       .place = {.folder = options.folder}});
                   }),
                   "the CPU computes only in fp32"));
  EXPECT_TRUE(FilesIn(options.folder).empty());
}

// Whether a recorded run counts is known only once its tokens are here, and
// making them takes longer than finding that a device is missing.
TEST(RunGrid, LooksForDevicesBeforeItPreparesCorporaOfTheRecord) {
  const NoDevice no_device;
  const std::filesystem::path cache = FreshFolder("record_cache");
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const std::filesystem::path folder = FreshFolder("record_device");
  const std::filesystem::path text = folder / "text.txt";
  WriteFileAtomically(text, trainer::TestText(trainer::TestDocuments(600)));
  WriteFileAtomically(folder / "micro.toml", MicroGrid(60));
  const Grid grid =
      LoadGrid(folder / "micro.toml",
               {"runtime.device=cuda", "data.corpus=path:" + text.string()});
  GridRunOptions options;
  options.folder = folder / "runs";
  options.selected = {0, 1};
  options.quiet = true;
  options.record.emplace();
  RecordedRun& finished = options.record->runs.emplace_back();
  finished.id = grid.runs[0].id;
  finished.key = RunIdentityKey(grid.runs[0]);
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { RunGrid(grid, options); }),
                   "device \"cuda\": "));
  EXPECT_TRUE(FilesIn(cache).empty());

  // A recorded run that failed here is trained, whatever the record has.
  options.selected = {0};
  const auto corpora = [&] {
    return RecordedCorpora(ReadGrid(grid, options.folder, true), options);
  };
  EXPECT_EQ(corpora(), std::vector<size_t>{0});
  RecordProblem(options.folder / RunFolderName(grid.runs[0]), "a loss of nan");
  EXPECT_TRUE(corpora().empty());
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { RunGrid(grid, options); }),
                   "device \"cuda\": "));
  EXPECT_TRUE(FilesIn(cache).empty());
}

TEST(CanBeMeasured, OnTheCheckpointOfAResultThatLacksSomething) {
  RunOutcome run;
  run.folder = FreshFolder("can_be_measured");
  run.state = RunState::kFinished;
  run.result.emplace();
  run.run.evaluations.router_health = true;
  EXPECT_FALSE(CanBeMeasured(run));
  WriteFileAtomically(run.folder / "checkpoint.h5", "");
  EXPECT_TRUE(CanBeMeasured(run));
  // The checkpoint of a recorded run is from a training that did not end here.
  run.recorded = true;
  EXPECT_FALSE(CanBeMeasured(run));
  run.recorded = false;
  run.run.evaluations = {};
  EXPECT_FALSE(CanBeMeasured(run));
}

// Rows may take different parts of a corpus, so every one is checked.
TEST(RequireTokens, LooksAtEveryRow) {
  const std::filesystem::path folder = FreshFolder("tokens_of_rows");
  ::setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  const std::filesystem::path text = folder / "text.txt";
  WriteFileAtomically(text, trainer::TestText(trainer::TestDocuments(600)));
  WriteFileAtomically(folder / "micro.toml",
                      MicroGrid(60,
                                "[[rows]]\nid = \"part\"\nlabel = \"L\"\n"
                                "[rows.config.router]\nkind = \"sparse\"\n"
                                "mean_active_experts = 1\n"
                                "[rows.config.data]\nmax_bytes = 1000\n"));
  const Grid grid =
      LoadGrid(folder / "micro.toml", {"data.corpus=path:" + text.string()});
  const Config& config = grid.runs.front().config;
  trainer::PrepareOptions prepare;
  prepare.quiet = true;
  GridRunOptions options;
  options.tokens[config.data.corpus] =
      trainer::PrepareCorpus(config.data, config.model.vocab_size, prepare)
          .prefix;
  options.selected = {0, 1, 2};
  EXPECT_NO_THROW(RequireTokens(grid, options));
  options.selected.push_back(3);
  EXPECT_THROW(RequireTokens(grid, options), DataError);
}

// What RequirePaperScale reports as missing; kNoError if nothing is.
std::string MissingFor(const Grid& grid, bool trains_here) {
  GridRunOptions options;
  options.folder = FreshFolder("paper_scale") / "runs";
  for (size_t r = 0; r < grid.runs.size(); ++r) options.selected.push_back(r);
  const std::vector<RunOutcome> runs = SelectedRuns(
      ReadGrid(grid, options.folder, /*check_checkpoints=*/true), options);
  const std::string missing = MessageOf<EnvironmentError>(
      [&] { RequirePaperScale(grid, runs, options, trains_here); });
  EXPECT_FALSE(std::filesystem::exists(options.folder));
  return missing;
}

class RequirePaperScaleTest : public testing::Test {
 protected:
  // Hides this machine's cache.
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", FreshFolder("paper_scale_cache").c_str(), 1);
  }

  const NoDevice no_device_;
};

TEST_F(RequirePaperScaleTest, AsksForWhatOnlyThatScaleNeeds) {
  for (const char* name : {"smoke", "mini", "midi"}) {
    EXPECT_EQ(MissingFor(LoadGrid(GridPath(name), {}), true), kNoError) << name;
  }
  const Grid paper = LoadGrid(GridPath("paper"), {});
  const std::string here = MissingFor(paper, true);
  const std::string there = MissingFor(paper, false);
  for (const char* text :
       {"33 runs", "no OpenWebText in ", "corpora/c4",
        "; its token files take about 368.6 GiB of tokens and 6.8 GiB of index",
        "\n  tasks: the items of the tasks ", "--task-files", "GPU hours",
        "`plan paper`", "`run mini`"}) {
    EXPECT_TRUE(Says(here, text));
    EXPECT_TRUE(Says(there, text));
  }
  // As `plan` says: with the paper's active experts.
  const double hours = Total(EstimateGrid(paper, ReadPaper())).gpu_hours;
  EXPECT_TRUE(Says(here, fmt::format(" FLOPs, {:.0f} GPU hours.", hours)));
  // Each requirement is named once.
  const std::string device = "\n  device: device \"cuda\": ";
  EXPECT_TRUE(Says(here, device));
  EXPECT_EQ(here.find(device), here.rfind(device));
  EXPECT_FALSE(Says(there, device));
  // The CPU is used if asked for, however long it takes.
  EXPECT_FALSE(Says(
      MissingFor(LoadGrid(GridPath("paper"), {"runtime.device=cpu"}), true),
      device));
}

TEST_F(RequirePaperScaleTest, NamesTheDiskBesideTheRest) {
  Grid paper = LoadGrid(GridPath("paper"), {});
  for (GridRun& run : paper.runs) {
    run.config.model.d_model = 1 << 16;
    run.config.model.d_ffn = 1 << 18;
    run.config.model.num_experts = 1 << 12;
  }
  const std::string missing = MissingFor(paper, true);
  EXPECT_TRUE(
      Says(missing, "\n  device: ", "\n  corpus: ", "\n  disk: ", "PiB"));
}

}  // namespace
}  // namespace softmoe::experiments
