// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are processes under mpirun.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/testing/mpi_test_util.h"
#include "optimized/testing/ranked_training.h"

namespace softmoe::optimized {
namespace {

class MpiRanks : public ::testing::TestWithParam<int> {
 protected:
  static int ranks() { return GetParam(); }

  static ProgramResult Run(const std::string& what) {
    std::vector<std::string> command = MpiRun(ranks());
    command.push_back(RunfilePath("optimized/testing/mpi_ranks").string());
    command.push_back(what);
    return RunProgram(command, ".");
  }

  static void ExpectFromEveryRank(const ProgramResult& result,
                                  const std::string& text) {
    for (int rank = 0; rank < ranks(); ++rank) {
      const std::string line = "rank " + std::to_string(rank) + " of " +
                               std::to_string(ranks()) + ": " + text + "\n";
      EXPECT_TRUE(Says(result.output, line));
    }
  }
};

TEST_P(MpiRanks, GiveWhatEveryOperationPromises) {
  const ProgramResult result = Run("operations");
  EXPECT_TRUE(EndedWith(result, 0));
  ExpectFromEveryRank(result, "all right");
}

TEST_P(MpiRanks, NameEveryMistakeOnEveryRank) {
  const ProgramResult result = Run("mistakes");
  EXPECT_TRUE(EndedWith(result, 0));
  ExpectFromEveryRank(result, "all named");
}

TEST_P(MpiRanks, TrainToTheBitsOfOneProcess) {
  const ProgramResult result = Run("train");
  EXPECT_TRUE(EndedWith(result, 0));
  ExpectFromEveryRank(result, Digest(TrainAlone(LargerConfig(4), 2)));
}

TEST_P(MpiRanks, AllEndWithTheCodeAndTheNameOfTheOneThatFailed) {
  const ProgramResult result = Run("failure");
  EXPECT_TRUE(EndedWith(result, 2));
  EXPECT_EQ(Count(result.output, "mpi_ranks: error: token 7 is damaged\n"), 1)
      << result.output;
  EXPECT_EQ(Count(result.output,
                  "mpi_ranks: error: rank 1 failed: token 7 is damaged\n"),
            ranks() - 1)
      << result.output;
}

// The first rank that has waited too long ends all, the silent one included.
TEST_P(MpiRanks, EndWithTheNameOfOneThatIsSilentInAStep) {
  const ProgramResult result = Run("silence");
  EXPECT_TRUE(EndedWith(result, 5));
  EXPECT_GE(Count(result.output,
                  "mpi_ranks: error: step 7: waits at a barrier: nothing from "
                  "rank 1 within 1 s; look at its output"),
            1)
      << result.output;
}

TEST_P(MpiRanks, WaitForRankZeroOutsideOfAStepAndSaySo) {
  const ProgramResult result = Run("patience");
  EXPECT_TRUE(EndedWith(result, 0));
  ExpectFromEveryRank(result, "all here");
  EXPECT_GE(Count(result.output,
                  "the preparation: waits at a barrier: waits for rank 0, "),
            ranks() - 1)
      << result.output;
}

INSTANTIATE_TEST_SUITE_P(Ranks, MpiRanks, ::testing::Values(2, 4));

}  // namespace
}  // namespace softmoe::optimized
