// SPDX-License-Identifier: Apache-2.0
#include "core/errors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/stoppable_output.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

struct Ending {
  int code;
  std::string text;  // on stderr
};

Ending RunAndCapture(const std::function<ExitCode()>& body) {
  ::testing::internal::CaptureStderr();
  const int code = RunMain("prog", body);
  return {code, ::testing::internal::GetCapturedStderr()};
}

template <typename E>
Ending RunThrowing() {
  return RunAndCapture([]() -> ExitCode { throw E("place: what; remedy"); });
}

// DESIGN.md, ruling 1.
TEST(RunMain, ReturnsWhatTheBodyReturns) {
  for (int code : {0, 1, 2, 3, 4, 5, 6, 7, 75}) {
    const Ending ending =
        RunAndCapture([code] { return static_cast<ExitCode>(code); });
    EXPECT_EQ(ending.code, code);
    EXPECT_EQ(ending.text, "");
  }
}

TEST(RunMain, TurnsEachErrorIntoItsExitCodeAndOneLine) {
  const std::string line = "prog: error: place: what; remedy\n";
  for (const auto& [ending, code] :
       {std::pair{RunThrowing<ConfigError>(), 2},
        std::pair{RunThrowing<DataError>(), 2},
        std::pair{RunThrowing<EnvironmentError>(), 5},
        std::pair{RunThrowing<NumericsError>(), 1},
        std::pair{RunThrowing<InternalError>(), 6}}) {
    EXPECT_EQ(ending.code, code);
    EXPECT_EQ(ending.text, line);
  }
}

TEST(RunMain, AStopThatWasAskedForIsNoError) {
  const Ending ending = RunThrowing<StoppedError>();
  EXPECT_EQ(ending.code, 75);
  EXPECT_EQ(ending.text, "prog: stopped: place: what; remedy\n");
}

TEST(RunMain, KnowsExceptionsThatAreNotOurs) {
  const Ending memory =
      RunAndCapture([]() -> ExitCode { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code, 5);
  EXPECT_TRUE(Says(memory.text, "out of memory"));
  const Ending file = RunAndCapture([]() -> ExitCode {
    return static_cast<ExitCode>(std::filesystem::file_size("/absent/file"));
  });
  EXPECT_EQ(file.code, 5);
  EXPECT_TRUE(Says(file.text, "/absent/file"));
  const Ending other =
      RunAndCapture([]() -> ExitCode { throw std::logic_error("surprise"); });
  EXPECT_EQ(other.code, 6);
  EXPECT_EQ(other.text, "prog: error: internal error: surprise\n");
  const Ending unknown = RunAndCapture([]() -> ExitCode { throw 1; });
  EXPECT_EQ(unknown.code, 6);
  EXPECT_TRUE(Says(unknown.text, "an exception of an unknown type"));
}

TEST(RunMain, AFullDiskBehindWhatWasPrintedIsNoInternalError) {
  const Ending ending = RunAndCapture([]() -> ExitCode {
    throw std::system_error(ENOSPC, std::generic_category(), "cannot write");
  });
  EXPECT_EQ(ending.code, 5);
  EXPECT_TRUE(Says(ending.text, "No space left"));
}

// Runs in its own process: calls `prepare`, then exits with what RunMain
// returns for a body that gives `code`.
void RunAlone(void (*prepare)(), ExitCode code) {
  prepare();
  std::exit(RunMain("prog", [&] {
    std::FILE* file = std::tmpfile();  // takes the lowest descriptor
    std::fputs("printed\n", stdout);
    std::fflush(stdout);
    std::fseek(file, 0, SEEK_END);
    if (std::ftell(file) != 0) std::fputs("in the file!\n", stderr);
    return code;
  }));
}

TEST(RunMainDeathTest, OutputThatDoesNotArriveIsNotDone) {
  const auto full = [] { ASSERT_TRUE(std::freopen("/dev/full", "w", stdout)); };
  EXPECT_EXIT(RunAlone(full, ExitCode::kDone), ::testing::ExitedWithCode(5),
              "prog: error: not all of the output");
  // A worse verdict keeps its exit code.
  EXPECT_EXIT(RunAlone(full, ExitCode::kFailed), ::testing::ExitedWithCode(1),
              "prog: error: not all of the output");
}

TEST(RunMainDeathTest, OutputThatNobodyWantsLandsInNoFile) {
  EXPECT_EXIT(RunAlone([] { close(STDOUT_FILENO); }, ExitCode::kDone),
              ::testing::ExitedWithCode(0), "^$");
}

TEST(RunMainDeathTest, NobodyReadingTheReasonLeavesTheExitCode) {
  const auto stop = [] {
    int ends[2];
    if (pipe(ends) == 0) dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    std::exit(RunMain("prog",
                      []() -> ExitCode { throw StoppedError("state saved"); }));
  };
  EXPECT_EXIT(stop(), ::testing::ExitedWithCode(75), "^$");
}

// A reader that does not read must not hold up a process that is asked to stop.
TEST(RunMainDeathTest, NobodyReadingMeanwhileLeavesTheExitCode) {
  const auto stop = [] {
    int ends[2];
    if (pipe(ends) == 0) dup2(ends[1], STDERR_FILENO);
    internal::stop_signal = SIGTERM;
    PrintUnlessStopped(stderr, std::string(1 << 20, 'x'));
    std::exit(RunMain("prog",
                      []() -> ExitCode { throw StoppedError("state saved"); }));
  };
  EXPECT_EXIT(stop(), ::testing::ExitedWithCode(75), "^$");
}

TEST(RunMainDeathTest, AFileBeyondALimitIsAnErrorOfWrite) {
  EXPECT_EXIT(std::exit(RunMain("prog",
                                []() -> ExitCode {
                                  const rlimit limit = {0, 0};
                                  setrlimit(RLIMIT_FSIZE, &limit);
                                  std::FILE* file = std::tmpfile();
                                  std::fputs("x", file);
                                  return std::fflush(file) == 0
                                             ? ExitCode::kDone
                                             : ExitCode::kEnvironment;
                                })),
              ::testing::ExitedWithCode(5), "^$");
}

TEST(RunMainDeathTest, HearsHowChildrenEndWhoeverStartedIt) {
  const auto run = [] {
    std::signal(SIGCHLD, SIG_IGN);
    std::exit(RunMain("prog", [] {
      return std::signal(SIGCHLD, SIG_DFL) == SIG_DFL ? ExitCode::kDone
                                                      : ExitCode::kFailed;
    }));
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "^$");
}

TEST(SoftmoeCheck, ThrowsWithPlaceConditionAndValues) {
  const int rows = -3;
  EXPECT_TRUE(Says(MessageOf<InternalError>(
                       [&] { SOFTMOE_CHECK(rows > 0) << "rows=" << rows; }),
                   "core/errors_test.cc:", "check failed: rows > 0 rows=-3"));
}

TEST(SoftmoeCheck, PrintsTextsPathsAndNumbers) {
  const std::filesystem::path path = "a/b";
  EXPECT_TRUE(Says(MessageOf<InternalError>([&] {
                     SOFTMOE_CHECK(false)
                         << path << ' ' << std::string("text") << " "
                         << uint8_t{7} << " " << int64_t{-1} << " " << 0.25f
                         << " " << 1e20 << " " << true;
                   }),
                   "check failed: false a/b text 7 -1 0.25 1e+20 1"));
}

TEST(SoftmoeCheck, EvaluatesTheConditionOnceAndTheTextOnlyOnFailure) {
  int conditions = 0, texts = 0;
  SOFTMOE_CHECK(++conditions > 0) << ++texts;
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(texts, 0);
}

TEST(SoftmoeCheck, IsOneStatementInFrontOfAnElse) {
  bool other = false;
  if (false)
    SOFTMOE_CHECK(false);
  else
    other = true;
  EXPECT_TRUE(other);
}

}  // namespace
}  // namespace softmoe
