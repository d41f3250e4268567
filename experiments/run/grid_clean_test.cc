// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_clean.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/testing/file_test_util.h"
#include "experiments/run/run_folder.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// The id of a process that has ended.
pid_t DeadProcess() {
  const pid_t process = fork();
  if (process == 0) _exit(0);
  waitpid(process, nullptr, 0);
  return process;
}

class GridClean : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = FreshFolder(std::string("clean_") + test->name());
    GridRun run;
    run.corpus.id = "text";
    run.row.id = "sparse-1";
    run.seed = run.config.training.seed = 7;
    grid_.runs = {run};
    own_ = RunFolderName(run);
  }
  void Write(const std::string& path, int64_t bytes = 10) {
    fs::create_directories((folder_ / path).parent_path());
    WriteFileAtomically(folder_ / path,
                        std::string(static_cast<size_t>(bytes), 'x'));
  }
  std::string Found() const {
    std::string text;
    for (const StaleItem& item : FindStale(grid_, folder_)) {
      text += item.path.lexically_relative(folder_).string() + " " +
              std::to_string(item.bytes) + "\n";
    }
    return text;
  }

  Grid grid_;
  fs::path folder_;
  std::string own_;
  const std::string foreign_ = "text-sparse-1-seed8-0123456789abcdef";
};

TEST_F(GridClean, TemporaryFilesOfTheDeadAreStale) {
  const std::string dead = std::to_string(DeadProcess());
  const std::string alive = std::to_string(getpid());
  Write(".results.h5." + dead + ".1.tmp", 5);
  Write(".results.h5." + alive + ".1.tmp");
  Write(own_ + "/.checkpoint.h5." + dead + ".12.tmp", 6);
  Write(own_ + "/.checkpoint.h5." + alive + ".1.tmp");
  // Names that we never use.
  Write("results.h5." + dead + ".1.tmp");
  Write(".results.h5." + dead + ".tmp");
  Write(".results.h5.0.1.tmp");
  Write(".results.h5.x" + dead + ".1.tmp");
  EXPECT_EQ(Found(), ".results.h5." + dead + ".1.tmp 5\n" + own_ +
                         "/.checkpoint.h5." + dead + ".12.tmp 6\n");
  DeleteStale(folder_, FindStale(grid_, folder_));
  EXPECT_EQ(Found(), "");
  EXPECT_EQ(FilesIn(folder_ / own_).size(), 1u);
}

// Temporary files of reports (also an experiment's), scripts and event files.
TEST_F(GridClean, TemporaryFilesInTheGridsOtherFoldersAreStale) {
  const std::string dead = std::to_string(DeadProcess());
  std::string all;
  for (const std::string& name :
       {std::string("plots/.loss.csv."), std::string("slurm/.text.sbatch."),
        std::string("tables/.main.csv."), std::string("tau/.results.h5."),
        std::string("tau/plots/.loss.svg."),
        "tensorboard/" + own_ + "/.events."}) {
    Write(name + dead + ".1.tmp");
    all += name + dead + ".1.tmp 10\n";
  }
  Write("tau/.report.html." + std::to_string(getpid()) + ".1.tmp");
  Write("tau/report.html");
  Write("mine/.results.h5." + dead + ".1.tmp");
  EXPECT_EQ(Found(), all);
  {
    const FolderLock lock(folder_ / "tensorboard");
    EXPECT_THROW(DeleteStale(folder_, FindStale(grid_, folder_)),
                 EnvironmentError);
    EXPECT_EQ(Found(), all);
  }
  DeleteStale(folder_, FindStale(grid_, folder_));
  EXPECT_EQ(Found(), "");
  EXPECT_EQ(FilesIn(folder_ / "tau").size(), 3u);
  EXPECT_EQ(FilesIn(folder_ / "mine").size(), 1u);
}

TEST_F(GridClean, FoldersOfOtherRunsAreStaleIfOnlyARunIsInThem) {
  Write(foreign_ + "/checkpoint.h5", 100);
  Write(foreign_ + "/metrics.jsonl", 20);
  Write(foreign_ + "/problem.txt", 3);
  const std::string dirty = "text-sparse-2-seed8-0123456789abcdef";
  Write(dirty + "/checkpoint.h5");
  Write(dirty + "/notes.txt");
  const std::string nested = "text-sparse-3-seed8-0123456789abcdef";
  Write(nested + "/checkpoint.h5");
  Write(nested + "/more/data");
  Write("text-sparse-1-seed8-0123456789abcde/checkpoint.h5");   // 15 digits
  Write("text-sparse-1-seed8-0123456789ABCDEF/checkpoint.h5");  // never ours
  Write("my-runs/checkpoint.h5");
  EXPECT_EQ(Found(), foreign_ + " 123\n");
  DeleteStale(folder_, FindStale(grid_, folder_));
  EXPECT_FALSE(fs::exists(folder_ / foreign_));
  EXPECT_TRUE(fs::exists(folder_ / dirty / "checkpoint.h5"));
  EXPECT_TRUE(fs::exists(folder_ / nested / "checkpoint.h5"));
}

TEST_F(GridClean, LinksAreNeverFollowed) {
  Write("elsewhere/" + foreign_ + "/checkpoint.h5");
  fs::create_directory_symlink(folder_ / "elsewhere" / foreign_,
                               folder_ / foreign_);
  const std::string linked = "text-sparse-2-seed8-0123456789abcdef";
  fs::create_directory(folder_ / linked);
  fs::create_symlink(folder_ / "elsewhere" / foreign_ / "checkpoint.h5",
                     folder_ / linked / "checkpoint.h5");
  EXPECT_EQ(Found(), "");
}

TEST_F(GridClean, CheckpointsOfUnfinishedOrDamagedRunsStay) {
  Write(own_ + "/checkpoint.h5");
  EXPECT_EQ(Found(), "");
  Write(own_ + "/result.h5");  // not HDF5
  EXPECT_EQ(Found(), "");
}

TEST_F(GridClean, WhatCameInMeanwhileStays) {
  Write(foreign_ + "/checkpoint.h5");
  const auto items = FindStale(grid_, folder_);
  ASSERT_EQ(items.size(), 1u);
  Write(foreign_ + "/notes.txt");
  EXPECT_THROW(DeleteStale(folder_, items), EnvironmentError);
  EXPECT_TRUE(fs::exists(folder_ / foreign_ / "notes.txt"));
}

// A running grid looks for the results of all runs at its end.
TEST_F(GridClean, NothingIsDeletedWhileAnyRunIsAtWork) {
  Write(foreign_ + "/checkpoint.h5");
  Write(own_ + "/metrics.jsonl");
  const FolderLock lock(folder_ / own_);
  EXPECT_THROW(DeleteStale(folder_, FindStale(grid_, folder_)),
               EnvironmentError);
  EXPECT_TRUE(fs::exists(folder_ / foreign_ / "checkpoint.h5"));
}

TEST_F(GridClean, RunsOfOtherSeedsAreTheGrids) {
  GridRun other = grid_.runs.front();
  other.seed = other.config.training.seed = 8;
  Write(RunFolderName(other) + "/checkpoint.h5");
  Write(foreign_ + "/checkpoint.h5");
  EXPECT_EQ(Found(), foreign_ + " 10\n");
}

}  // namespace
}  // namespace softmoe::experiments
