// SPDX-License-Identifier: Apache-2.0
//
// A rank that is killed, stopped or cut off while it trains, at a moment that a
// seed decides: the others end, with its name, and what they leave goes on to
// the bits of a run that nobody disturbed. MOMENTS of each, in the BUILD file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/process/process.h"
#include "core/process/subprocess.h"
#include "optimized/communicator/socket.h"
#include "optimized/communicator/testing/mpi_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result_file.h"
#include "trainer/testing/rank_test_util.h"

namespace softmoe::trainer {
namespace {

using optimized::Socket;

constexpr int kRanks = 4;
// So many that none of them ends before the moment, even if this test is not
// given time for a while.
const Strings kSteps = {"--set", "training.steps=400", "--checkpoint-every",
                        "7"};

// The connections over TCP of another process, shared with it.
std::vector<Socket> ConnectionsOf(pid_t process) {
  std::vector<Socket> connections;
  const Socket handle(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  const std::filesystem::path folder =
      "/proc/" + std::to_string(process) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const int number = std::stoi(entry.path().filename().string());
    Socket copy(static_cast<int>(
        ::syscall(SYS_pidfd_getfd, handle.descriptor(), number, 0)));
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    if (copy &&
        ::getpeername(copy.descriptor(), reinterpret_cast<sockaddr*>(&address),
                      &size) == 0 &&
        (address.ss_family == AF_INET || address.ss_family == AF_INET6)) {
      connections.push_back(std::move(copy));
    }
  }
  return connections;
}

// Why this test may not do that; "" if it may.
std::string ObstacleToClosing() {
  const Socket own(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const Socket copy(static_cast<int>(
      ::syscall(SYS_pidfd_getfd, own.descriptor(), STDERR_FILENO, 0)));
  return copy ? "" : std::string("pidfd_getfd: ") + std::strerror(errno);
}

class RankFailure : public RankTest {
 protected:
  // Silence is the only sign of a stopped rank; others are noticed at once.
  static Strings Limit(bool silent) {
    return {"--silence-limit", silent ? "2" : "600"};
  }
  Strings Command(const std::string& run, bool silent) const {
    return Joined(Train(run, kSteps), Limit(silent));
  }

  // What the moments have in common: `disturb(victim)` once rank 0 has printed
  // the step.
  struct Moment {
    int victim;
    std::string step;
    std::mt19937 chance;
  };
  static Moment MomentOf(int number) {
    std::mt19937 chance(static_cast<unsigned>(number));
    const int victim = static_cast<int>(chance() % kRanks);
    const auto step = 2 + chance() % 60;
    return {victim, "\nstep " + std::to_string(step) + "/400", chance};
  }

  // Goes on with what was left, on other ranks, to the end.
  void ExpectToGoOn(const std::string& run, int number) const {
    EXPECT_FALSE(std::filesystem::exists(folder_ / run / kResultName))
        << "it ended before it was disturbed";
    if (number % 2 == 0) {
      const ProgramResult rest = RunAlone(run, kSteps);
      ASSERT_EQ(rest.exit_status, 0) << rest.output;
    } else {
      ExpectEnd(StartRanks(2, Train(run, kSteps)), 0);
    }
    ExpectSameRun("alone", run);
  }

  // Ranks that environment variables make. `disturb` gets their processes.
  using Disturb = std::function<void(const Ranks&, Moment&)>;
  void TryMoments(const std::string& kind, bool silent, bool victim_ends,
                  const Disturb& disturb, const std::string& words) const {
    ASSERT_EQ(RunAlone("alone", kSteps).exit_status, 0);
    for (int number = 0; number < MOMENTS; ++number) {
      SCOPED_TRACE(kind + " at moment " + std::to_string(number));
      const std::string run = kind + std::to_string(number);
      Moment moment = MomentOf(number);
      const Ranks ranks = StartRanks(kRanks, Command(run, silent));
      ASSERT_EQ(ranks.size(), static_cast<size_t>(kRanks))
          << ranks[0]->output();
      ASSERT_TRUE(ranks[0]->Await(moment.step)) << ranks[0]->output();
      disturb(ranks, moment);
      for (int rank = 0; rank < kRanks; ++rank) {
        if (rank == moment.victim && !victim_ends) continue;
        RunningProgram& program = *ranks[static_cast<size_t>(rank)];
        EXPECT_EQ(program.AwaitEnd(), 5) << program.output();
        const std::string prefix =
            rank == 0 ? "\n" : "\nrank " + std::to_string(rank) + ": ";
        EXPECT_EQ(Count(program.output(), prefix + "train: error: "), 1)
            << program.output();
        EXPECT_EQ(Count(program.output(), words), 1) << program.output();
        if (victim_ends) continue;
        EXPECT_EQ(
            Count(program.output(),
                  "error: rank " + std::to_string(moment.victim) + " of 4 ("),
            1)
            << program.output();
      }
      RunningProgram& victim = *ranks[static_cast<size_t>(moment.victim)];
      // One that is only stopped still is.
      ::kill(victim.ProcessOf(moment.victim), SIGKILL);
      victim.AwaitEnd();
      ExpectToGoOn(run, number);
    }
  }

  static void Signal(const Ranks& ranks, int rank, int signal) {
    RunningProgram& program = *ranks[static_cast<size_t>(rank)];
    EXPECT_EQ(::kill(program.ProcessOf(rank), signal), 0);
  }

  // Ranks under an mpirun, which ends the others itself if one is killed.
  void TryMpiMoments(int signal, const std::string& words) const {
    ASSERT_EQ(RunAlone("alone", kSteps).exit_status, 0);
    for (int number = 0; number < MOMENTS; ++number) {
      SCOPED_TRACE(number);
      const std::string run = "mpi" + std::to_string(number);
      const Moment moment = MomentOf(number);
      ProcessOptions options;
      options.arguments = Joined(
          optimized::MpiRun(kRanks),
          Joined(RankNamer("$OMPI_COMM_WORLD_RANK"),
                 Joined(Command(run, signal == SIGSTOP), {"--ranks", "mpi"})));
      options.folder = folder_;
      RunningProgram mpirun(options);
      ASSERT_TRUE(mpirun.Await(moment.step)) << mpirun.output();
      EXPECT_EQ(::kill(mpirun.ProcessOf(moment.victim), signal), 0);
      EXPECT_NE(mpirun.AwaitEnd(), 0) << mpirun.output();
      if (!words.empty()) {
        EXPECT_NE(
            mpirun.output().find("error: rank " +
                                 std::to_string(moment.victim) + " of 4 ("),
            std::string::npos)
            << mpirun.output();
        EXPECT_NE(mpirun.output().find(words), std::string::npos);
      }
      ExpectToGoOn(run, number);
    }
  }
};

TEST_F(RankFailure, KilledRanksAreNamed) {
  TryMoments(
      "kill", /*silent=*/false, /*victim_ends=*/false,
      [](const Ranks& ranks, const Moment& moment) {
        Signal(ranks, moment.victim, SIGKILL);
      },
      "has ended without a word");
}

TEST_F(RankFailure, StoppedRanksAreNamed) {
  TryMoments(
      "stop", /*silent=*/true, /*victim_ends=*/false,
      [](const Ranks& ranks, const Moment& moment) {
        Signal(ranks, moment.victim, SIGSTOP);
      },
      "has been silent for 1.");
}

TEST_F(RankFailure, AClosedConnectionEndsAll) {
  const std::string obstacle = ObstacleToClosing();
  if (!obstacle.empty()) GTEST_SKIP() << obstacle;
  TryMoments(
      "close", /*silent=*/false, /*victim_ends=*/true,
      [](const Ranks& ranks, Moment& moment) {
        const auto victim = static_cast<size_t>(moment.victim);
        const std::vector<Socket> connections =
            ConnectionsOf(ranks[victim]->ProcessOf(moment.victim));
        // To each other rank, and those of the watch.
        ASSERT_GE(connections.size(), static_cast<size_t>(kRanks));
        const Socket& one = connections[moment.chance() % connections.size()];
        EXPECT_EQ(::shutdown(one.descriptor(), SHUT_RDWR), 0);
      },
      " of 4 (");
}

// That rank 0 cannot write then is what the others have to notice: a signal
// would end them with 75, which says that all is saved.
TEST_F(RankFailure, NobodyReportsACheckpointThatRankZeroHasNotWritten) {
  const Ranks ranks = StartRanks(kRanks, Command("stopped", /*silent=*/true));
  ASSERT_TRUE(ranks[0]->Await("\nstep 3/400")) << ranks[0]->output();
  Signal(ranks, 0, SIGSTOP);
  for (int rank = 1; rank < kRanks; ++rank) Signal(ranks, rank, SIGTERM);
  for (size_t rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks[rank]->AwaitEnd(), 5) << ranks[rank]->output();
    EXPECT_EQ(Count(ranks[rank]->output(), "stopped: "), 0);
  }
}

class MpiRankFailure : public RankFailure {
 protected:
  void SetUp() override {
    const std::string obstacle = optimized::ObstacleToMpi();
    if (!obstacle.empty()) GTEST_SKIP() << obstacle;
    RankTest::SetUp();
  }
};

TEST_F(MpiRankFailure, KilledRanksEndAll) { TryMpiMoments(SIGKILL, ""); }

TEST_F(MpiRankFailure, StoppedRanksAreNamed) {
  TryMpiMoments(SIGSTOP, "has been silent for 1.");
}

}  // namespace
}  // namespace softmoe::trainer
