// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_status.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/run/run_folder.h"
#include "trainer/results/metrics_log.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// Two runs that have begun; `write` makes the metrics of the first.
class GridStatusOf : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = FreshFolder(std::string("status_") + test->name());
    for (const int64_t seed : {7, 8}) {
      GridRun run;
      run.corpus.id = "text";
      run.row.id = "sparse-1";
      run.id = "run-" + std::to_string(seed);
      run.seed = run.config.training.seed = seed;
      run.config.training.steps = 60;
      fs::create_directories(folder_ / RunFolderName(run));
      grid_.runs.push_back(run);
    }
    WriteFileAtomically(Metrics(0), Log(0, 5));
    WriteFileAtomically(Metrics(1), Log(1, 41));
  }
  fs::path Metrics(size_t run) const {
    return folder_ / RunFolderName(grid_.runs[run]) / trainer::kMetricsName;
  }
  // The first line of a run's log, followed by this many steps.
  std::string Log(size_t run, int64_t steps) const {
    std::string lines = R"({"kind":"run","config_hash":")" +
                        ConfigHash(grid_.runs[run].config) + "\"}\n";
    for (int64_t step = 1; step <= steps; ++step) {
      lines += Step(std::to_string(step));
    }
    return lines;
  }
  static std::string Step(const std::string& step) {
    return R"({"kind":"step","step":)" + step +
           R"(,"loss":3.5,"seconds":0.5})" + "\n";
  }
  // Whether the first run is shown as `state`, with the exit code that belongs
  // to it, and the other run is still shown beside it.
  testing::AssertionResult FirstIs(const std::string& state,
                                   const std::string& problem) const {
    const GridStatus status = DescribeStatus(grid_, folder_);
    if (status.problems.code() !=
        (state == "damaged" ? ExitCode::kUsage : ExitCode::kEnvironment)) {
      return testing::AssertionFailure() << status.text;
    }
    return Says(status.text, "run-7", "41/60", "0 of 2 runs are finished",
                "run-7 " + state + ": ", problem);
  }

  Grid grid_;
  fs::path folder_;
};

TEST_F(GridStatusOf, ShowsTheStepsOfAllRuns) {
  const GridStatus status = DescribeStatus(grid_, folder_);
  EXPECT_EQ(status.problems.code(), ExitCode::kDone);
  EXPECT_TRUE(Says(status.text, "run-7", "5/60", "run-8", "41/60"));
}

TEST_F(GridStatusOf, ALineOfAnotherKindIsNoStep) {
  WriteFileAtomically(
      Metrics(0),
      Log(0, 8) + "{\"kind\":1}\n{\"kind\":null}\n{}\n" + Step("9"));
  const GridStatus status = DescribeStatus(grid_, folder_);
  EXPECT_EQ(status.problems.code(), ExitCode::kDone);
  EXPECT_TRUE(Says(status.text, "9/60", "41/60"));
}

TEST_F(GridStatusOf, AStepIsTheNextWholeNumber) {
  for (const char* step :
       {"\"nan\"", "-1", "1.5", "1e300", "null", "0", "1", "3"}) {
    WriteFileAtomically(Metrics(0), Log(0, 1) + Step(step));
    EXPECT_TRUE(FirstIs("damaged", Metrics(0).string() + ":3: 'step' is not 2"))
        << step;
  }
}

TEST_F(GridStatusOf, ALogIsThatOfTheRun) {
  WriteFileAtomically(Metrics(0), Log(1, 41));
  EXPECT_TRUE(FirstIs("damaged", Metrics(0).string() +
                                     ":1: a log of configuration " +
                                     ConfigHash(grid_.runs[1].config) +
                                     ", but its folder is that of " +
                                     ConfigHash(grid_.runs[0].config)));
  WriteFileAtomically(Metrics(0), Step("1"));
  EXPECT_TRUE(FirstIs("damaged", Metrics(0).string() + ":1: the first line"));
}

TEST_F(GridStatusOf, WhatCannotBeReadHidesNoOtherRun) {
  const fs::path metrics = Metrics(0);
  fs::remove(metrics);
  fs::create_directory(metrics);
  EXPECT_TRUE(FirstIs("unreadable", metrics.string()));
  fs::remove(metrics);
  ASSERT_EQ(::mkfifo(metrics.c_str(), 0600), 0);
  EXPECT_TRUE(FirstIs("unreadable", "a device or a pipe"));
  fs::remove(metrics);
  fs::create_symlink(metrics.filename(), metrics);
  EXPECT_TRUE(FirstIs("unreadable", metrics.string()));
  // Unreadable like a folder without permission, which root could still read.
  const fs::path run = metrics.parent_path();
  fs::remove_all(run);
  fs::create_symlink(run.filename(), run);
  EXPECT_TRUE(FirstIs("unreadable", "check the path and its permissions"));
}

TEST_F(GridStatusOf, DamageCountsBeforeWhatCannotBeRead) {
  WriteFileAtomically(Metrics(0), Step("1"));
  fs::remove(Metrics(1));
  fs::create_directory(Metrics(1));
  const GridStatus status = DescribeStatus(grid_, folder_);
  EXPECT_TRUE(Says(status.text, "run-7 damaged: ", "run-8 unreadable: "));
  EXPECT_EQ(status.problems.code(), ExitCode::kUsage);
}

}  // namespace
}  // namespace softmoe::experiments
