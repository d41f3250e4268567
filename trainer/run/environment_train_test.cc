// SPDX-License-Identifier: Apache-2.0
//
// //:train on processes that environment variables make ranks, over TCP.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/process/subprocess.h"
#include "optimized/communicator/socket.h"
#include "trainer/results/checkpoint.h"
#include "trainer/testing/rank_test_util.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

class EnvironmentTrain : public RankTest {
 protected:
  // All ranks end with 2 and say `words`, and nothing is written.
  void ExpectRefused(int size, const Strings& command, const Change& change,
                     const std::string& words) const {
    const Ranks ranks = StartRanks(size, command, change);
    ASSERT_EQ(ranks.size(), static_cast<size_t>(size)) << ranks[0]->output();
    ExpectEnd(ranks, 2);
    for (size_t r = 0; r < ranks.size(); ++r) {
      const std::string output = ranks[r]->output();
      EXPECT_EQ(Count(output, words), 1) << output;
      // Messages of ranks other than 0 carry their rank.
      const std::string from =
          r == 0 ? "\ntrain: error: "
                 : "\nrank " + std::to_string(r) + ": train: error: ";
      EXPECT_EQ(Count(output, from), 1) << output;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  }
};

TEST_F(EnvironmentTrain, LeavesWhatOneProcessLeaves) {
  ASSERT_EQ(RunAlone("alone").exit_status, 0);
  for (const int size : {1, 2, 4}) {
    const std::string run = std::to_string(size);
    const Ranks ranks = StartRanks(size, Train(run));
    ExpectEnd(ranks, 0);
    for (size_t r = 0; r < ranks.size(); ++r) {
      const std::string output = ranks[r]->output();
      EXPECT_EQ(Count(output, "step 20/20 | loss "), r == 0 ? 1 : 0) << output;
      EXPECT_EQ(Count(output, "\nval loss "), r == 0 ? 1 : 0) << output;
      // Nothing but the line by which this test knows it.
      EXPECT_EQ(Count(output, "\n") == 1, r != 0) << output;
    }
    ExpectSameRun("alone", run);
  }
  // And a finished run is only read.
  ExpectEnd(StartRanks(2, Train("2")), 0);
}

TEST_F(EnvironmentTrain, LeavesWhatOneProcessLeavesAtTheSizesOfTheSmokeGrid) {
  config_ = kSmoke;
  ASSERT_EQ(RunAlone("alone").exit_status, 0);
  for (const int size : {2, 4}) {
    const std::string run = std::to_string(size);
    ExpectEnd(StartRanks(size, Train(run)), 0);
    ExpectSameRun("alone", run);
  }
}

TEST_F(EnvironmentTrain, ASignalToOneRankSavesAndEndsAll) {
  // So many steps that none of them ends before the signal comes.
  const Strings steps = {"--set", "training.steps=400"};
  ASSERT_EQ(RunAlone("alone", steps).exit_status, 0);
  const Ranks ranks = StartRanks(4, Train("stopped", steps));
  ASSERT_TRUE(ranks[0]->Await("\nstep 2/400")) << ranks[0]->output();
  EXPECT_EQ(kill(ranks[2]->ProcessOf(2), SIGTERM), 0);
  ExpectEnd(ranks, 75);
  EXPECT_EQ(
      Count(ranks[2]->output(), "rank 2: train: stopped: SIGTERM: after step "),
      1);
  EXPECT_EQ(Count(ranks[0]->output(), "\ntrain: stopped: rank 2: after step "),
            1);
  const int64_t step =
      Checkpoint(folder_ / "stopped" / kCheckpointName).state().step;
  EXPECT_GE(step, 2);
  EXPECT_LT(step, 400);
  // Another number of ranks goes on.
  ExpectEnd(StartRanks(2, Train("stopped", steps)), 0);
  ExpectSameRun("alone", "stopped");
}

TEST_F(EnvironmentTrain, RefusesRanksThatDisagree) {
  const auto of_rank_1 = [](const Strings& more) {
    return [more](int rank, Given& given) {
      if (rank == 1) given.command = Joined(given.command, more);
    };
  };
  ExpectRefused(2, Train("refused"), of_rank_1({"--set", "training.seed=7"}),
                "rank 0 has configuration ");
  ExpectRefused(2, Train("refused"), of_rank_1({"--silence-limit", "31"}),
                "rank 0 has silence limit 30 s, rank 1 has 31 s");

  // Other tokens, under the same name.
  const std::filesystem::path other = WriteTinyTokens(folder_ / "other", 2);
  ExpectRefused(
      2, Train("refused"),
      [&](int rank, Given& given) {
        for (std::string& word : given.command) {
          if (rank == 1 && word == tokens_) word = other;
        }
      },
      "rank 0 has data_sha256 ");

  // A program of another build: what follows the last section is not loaded.
  const std::filesystem::path program = folder_ / "train";
  std::filesystem::copy_file(Train("")[0], program);
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  std::ofstream(program, std::ios::app) << "another build";
  ExpectRefused(
      2, Train("refused"),
      [&](int rank, Given& given) {
        if (rank == 1) given.command[0] = program;
      },
      "rank 0 has program ");
}

TEST_F(EnvironmentTrain, RefusesAnotherNumberOfRanksAndNumbersGivenTwice) {
  ExpectRefused(
      2, Train("refused"),
      [](int rank, Given& given) {
        if (rank == 1) given.variables["WORLD_SIZE"] = "4";
      },
      "was started as one of 4 ranks, rank 0 as one of 2");
  const Ranks ranks =
      StartRanks(3, Train("refused"), [](int rank, Given& given) {
        if (rank == 2) given.variables["RANK"] = "1";
      });
  ExpectEnd(ranks, 2);
  for (const auto& rank : ranks) {
    EXPECT_EQ(Count(rank->output(), "two processes are rank 1: ("), 1)
        << rank->output();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

TEST_F(EnvironmentTrain, KeepsOutARankWithAnotherSecretAndGoesOn) {
  const Strings command = Train("run");
  const auto rank_0 = StartRank(0, 2, 0, command);
  const int64_t port = PortOf(*rank_0);
  const auto other = StartRank(1, 2, port, command, [](int, Given& given) {
    given.variables["SOFTMOE_RANKS_SECRET"] = "a secret of another test";
  });
  EXPECT_EQ(other->AwaitEnd(), 2);
  EXPECT_EQ(Count(other->output(),
                  "\nrank 1: train: error: what listens at 127.0.0.1:" +
                      std::to_string(port) + " has another secret"),
            1)
      << other->output();
  EXPECT_EQ(Count(other->output(), "secret of "), 0) << other->output();
  const auto rank_1 = StartRank(1, 2, port, command);
  EXPECT_EQ(rank_0->AwaitEnd(), 0) << rank_0->output();
  EXPECT_EQ(rank_1->AwaitEnd(), 0) << rank_1->output();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run" / kCheckpointName));
}

TEST_F(EnvironmentTrain, SaysWhatIsWrongWithTheEnvironment) {
  const auto expect = [&](const Change& change, int code,
                          const std::string& words) {
    const Ranks ranks = StartRanks(1, Train("refused"), change);
    EXPECT_EQ(ranks[0]->AwaitEnd(), code) << ranks[0]->output();
    EXPECT_EQ(Count(ranks[0]->output(), words), 1) << ranks[0]->output();
  };
  expect([](int, Given& given) { given.variables["WORLD_SIZE"] = ""; }, 2,
         "WORLD_SIZE is not set");
  expect([](int, Given& given) { given.variables["RANK"] = "1"; }, 2,
         "RANK=1 with WORLD_SIZE=1");
  expect(
      [](int, Given& given) { given.variables["SOFTMOE_RANKS_SECRET"] = ""; },
      2, "--ranks env needs a secret");
  // Nobody is rank 0. Port 1 is nobody's.
  expect(
      [](int, Given& given) {
        given.variables["RANK"] = "1";
        given.variables["WORLD_SIZE"] = "2";
        given.variables["MASTER_PORT"] = "1";
        given.command = Joined(given.command, {"--join-limit", "0"});
      },
      5, "rank 1: train: error: rank 0 does not answer at 127.0.0.1:1 ");
  // srun's name of a node that nobody knows: longer than names can be.
  expect(
      [](int, Given& given) {
        given.variables = {{"SLURM_PROCID", "1"},
                           {"SLURM_NTASKS", "2"},
                           {"SLURM_STEP_NODELIST", std::string(64, 'n')},
                           {"SOFTMOE_RANKS_SECRET", "the secret of a test"}};
        given.command = Joined(given.command, {"--join-limit", "0"});
      },
      5, "let MASTER_ADDR be an address of its machine that this one reaches");
  // Somebody else has the port of rank 0.
  const optimized::Listener holder("127.0.0.1", 0);
  expect(
      [&](int, Given& given) {
        given.variables["WORLD_SIZE"] = "2";
        given.variables["MASTER_PORT"] = std::to_string(holder.port());
      },
      5, "another MASTER_PORT");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

// Who comes before the ranks, says nothing or something else and stays, and who
// comes later.
TEST_F(EnvironmentTrain, StrangersAreKeptOutAndTheRunIsUnharmed) {
  ASSERT_EQ(RunAlone("alone").exit_status, 0);
  const Strings command = Train("run");
  const auto rank_0 = StartRank(0, 2, 0, command);
  const auto port = static_cast<int>(PortOf(*rank_0));
  const auto come = [&] {
    std::string reason;
    return optimized::Connect("127.0.0.1", port, optimized::After(60), &reason);
  };
  std::mt19937 chance(1);
  std::string noise(4096, ' ');
  for (char& letter : noise) letter = static_cast<char>(chance());
  std::vector<optimized::Socket> strangers;
  for (const std::string& words :
       {std::string(), noise, std::string("GET / HTTP/1.1\r\n\r\n")}) {
    strangers.push_back(come());
    ASSERT_TRUE(strangers.back());
    strangers.back().Send(std::as_bytes(std::span(words)),
                          optimized::After(60));
  }
  const auto rank_1 = StartRank(1, 2, port, command);
  ASSERT_TRUE(rank_0->Await("\nstep 1/20 ")) << rank_0->output();
  EXPECT_FALSE(come()) << "rank 0 still listens";
  EXPECT_EQ(rank_0->AwaitEnd(), 0) << rank_0->output();
  EXPECT_EQ(rank_1->AwaitEnd(), 0) << rank_1->output();
  ExpectSameRun("alone", "run");
}

TEST_F(EnvironmentTrain, GroupsThatDoNotDivideEndWithTwo) {
  ExpectRefused(
      3, Train("refused"), [](int, Given&) {}, "start 1, 2 or 4 ranks");
}

}  // namespace
}  // namespace softmoe::trainer
