// SPDX-License-Identifier: Apache-2.0
//
// //:train on processes under mpirun. Skipped, with the reason, where Open MPI
// is missing.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"
#include "core/process/process.h"
#include "core/process/subprocess.h"
#include "core/testing/file_test_util.h"
#include "optimized/communicator/mpi_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

using Strings = std::vector<std::string>;

Strings Joined(Strings words, const Strings& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class MpiTrain : public testing::Test {
 protected:
  void SetUp() override {
    const std::string obstacle = optimized::ObstacleToMpi();
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = FreshFolder(std::string("mpi_") + test->name());
    tokens_ = WriteTinyTokens(folder_ / "data");
    Config config = TinyConfig(RouterKind::kSoftLearned);
    config.training.global_batch_sequences = 8;  // four balance groups
    config.training.eval_every = 5;
    std::ofstream(folder_ / "tiny.toml") << ConfigToToml(config);
  }

  Strings Train(const std::string& run, const Strings& more) const {
    return Joined(
        {std::filesystem::absolute("trainer/run/train").string(), "--config",
         "tiny.toml", "--data", tokens_.string(), "--threads", "1",
         "--log-every", "1", "--out", (folder_ / run).string()},
        more);
  }
  ProgramResult RunAlone(const std::string& run,
                         const Strings& more = {}) const {
    return RunProgram(Train(run, more), folder_);
  }
  ProgramResult RunRanks(int ranks, const std::string& run,
                         const Strings& more = {}) const {
    return RunProgram(Joined(optimized::MpiRun(ranks),
                             Joined(Train(run, more), {"--ranks", "mpi"})),
                      folder_);
  }

  void ExpectSameRun(const std::string& expected, const std::string& got) {
    ExpectSameResult(ReadRunResult(folder_ / expected / kResultName),
                     ReadRunResult(folder_ / got / kResultName));
    ExpectSameTensors(folder_ / expected / kCheckpointName,
                      folder_ / got / kCheckpointName);
    EXPECT_EQ(MetricsOf(folder_ / expected), MetricsOf(folder_ / got));
    EXPECT_EQ(FilesIn(folder_ / got),
              (Strings{kCheckpointName, kMetricsName, kResultName}));
  }

  std::filesystem::path folder_, tokens_;
};

int Count(std::string_view text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(MpiTrain, LeavesWhatOneProcessLeaves) {
  ASSERT_EQ(RunAlone("alone").exit_status, 0);
  for (const int ranks : {2, 4}) {
    const std::string run = std::to_string(ranks);
    const ProgramResult result = RunRanks(ranks, run);
    ASSERT_EQ(result.exit_status, 0) << result.output;
    EXPECT_EQ(Count(result.output, "step 12/12 | loss "), 1) << result.output;
    EXPECT_EQ(Count(result.output, "\nval loss "), 1) << result.output;
    ExpectSameRun("alone", run);
    // And a finished run is only read.
    EXPECT_EQ(RunRanks(ranks, run).exit_status, 0);
  }
}

TEST_F(MpiTrain, ASignalToOneRankSavesAndEndsAll) {
  // So many steps that none of them ends before the signal comes.
  const Strings steps = {"--set", "training.steps=400"};
  ASSERT_EQ(RunAlone("alone", steps).exit_status, 0);

  // Each rank says who it is, in a line of its own.
  std::string words;
  for (const std::string& word :
       Joined(Train("stopped", steps), {"--ranks", "mpi"})) {
    words += " '" + word + "'";
  }
  ProcessOptions options;
  options.arguments = Joined(
      optimized::MpiRun(2),
      {"sh", "-c", "echo \"process $OMPI_COMM_WORLD_RANK $$.\"; exec" + words});
  options.folder = folder_;
  Process mpirun(options);
  std::string output;
  pid_t second = 0;
  const auto sink = [&](Process::Stream, std::string_view bytes) {
    output += bytes;
    const std::string name = "process 1 ";
    const size_t at = output.find(name);
    if (second != 0 || at == std::string::npos ||
        output.find("\nstep 2/400") == std::string::npos) {
      return;
    }
    second = static_cast<pid_t>(std::stol(output.substr(at + name.size())));
    EXPECT_EQ(kill(second, SIGTERM), 0);
  };
  mpirun.ListenToEnd(sink);
  EXPECT_NE(second, 0) << output;
  EXPECT_EQ(mpirun.ExitStatus(), 75) << output;
  EXPECT_EQ(Count(output, "train: stopped: SIGTERM: after step "), 1) << output;
  EXPECT_EQ(Count(output, "train: stopped: rank 1: after step "), 1) << output;
  const int64_t step =
      Checkpoint(folder_ / "stopped" / kCheckpointName).state().step;
  EXPECT_GE(step, 2);
  EXPECT_LT(step, 400);

  // Another number of ranks, in threads and processes, goes on.
  const ProgramResult rest = RunRanks(4, "stopped", steps);
  ASSERT_EQ(rest.exit_status, 0) << rest.output;
  EXPECT_EQ(Count(rest.output, "going on after step "), 1);
  ExpectSameRun("alone", "stopped");
}

TEST_F(MpiTrain, RanksThatDisagreeEndWithTwoAndWriteNothing) {
  const Strings common = {"--ranks", "mpi"};
  const ProgramResult result = RunProgram(
      Joined(Joined(Joined(optimized::MpiRun(1),
                           Train("apart",
                                 Joined({"--set", "training.seed=1"}, common))),
                    {":", "-n", "1"}),
             Train("apart", Joined({"--set", "training.seed=2"}, common))),
      folder_);
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_EQ(Count(result.output, "train: error: rank 0 has configuration "), 2)
      << result.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "apart"));
}

TEST_F(MpiTrain, GroupsThatDoNotDivideEndWithTwo) {
  const ProgramResult result = RunRanks(3, "three");
  EXPECT_EQ(result.exit_status, 2) << result.output;
  EXPECT_EQ(Count(result.output, "start 1, 2 or 4 ranks"), 3) << result.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "three"));
}

}  // namespace
}  // namespace softmoe::trainer
