// SPDX-License-Identifier: Apache-2.0
#include "core/process/isolated_call.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

TEST(CallIsolated, ReturnsWhatTheBodyReturns) {
  const std::string long_text(50000, 'x');  // more than one pipe read
  const IsolatedResult result = CallIsolated([&] { return long_text; }, {});
  EXPECT_TRUE(result.completed) << result.failure;
  EXPECT_EQ(result.value, long_text);
}

TEST(CallIsolated, PassesBackMoreOnlyWhereItIsAllowed) {
  const auto body = [] { return std::string(200'000, 'x'); };
  EXPECT_EQ(CallIsolated(body, {}).failure, "gave more than 65536 bytes");
  const IsolatedResult result = CallIsolated(body, {.value_bytes = 200'000});
  EXPECT_TRUE(result.completed) << result.failure;
  EXPECT_EQ(result.value.size(), 200'000u);
}

TEST(CallIsolated, LeavesThisProcessUntouched) {
  int value = 1;
  CallIsolated(
      [&] {
        value = 2;
        return std::string();
      },
      {});
  EXPECT_EQ(value, 1);
}

TEST(CallIsolated, CtrlCIsNotForTheChild) {
  // A terminal sends the signal to a whole process group.
  const IsolatedResult result =
      CallIsolated([] { return std::to_string(::getpgrp()); }, {});
  EXPECT_TRUE(result.completed) << result.failure;
  EXPECT_NE(result.value, std::to_string(::getpgrp()));
}

TEST(CallIsolated, SurvivesACrash) {
  const IsolatedResult result = CallIsolated(
      []() -> std::string {
        ::raise(SIGSEGV);
        return "";
      },
      {});
  EXPECT_FALSE(result.completed);
  EXPECT_EQ(result.failure, "crashed (Segmentation fault)");
}

TEST(CallIsolated, SurvivesAnAbort) {
  const IsolatedResult result =
      CallIsolated([]() -> std::string { std::abort(); }, {});
  EXPECT_FALSE(result.completed);
}

// A scheduler that stops a job signals all of its processes.
TEST(CallIsolated, ARequestToStopIsNoCrash) {
  const IsolatedResult result = CallIsolated(
      []() -> std::string {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::raise(signal);
        return "all of it";
      },
      {});
  EXPECT_TRUE(result.completed) << result.failure;
  EXPECT_EQ(result.value, "all of it");
}

TEST(CallIsolated, SaysWhatToDoIfThereCanBeNoPipe) {
  struct rlimit files = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  struct rlimit none = files;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string message = MessageOf<EnvironmentError>(
      [] { CallIsolated([] { return std::string(); }, {}); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(message,
            "cannot make a pipe: Too many open files; raise `ulimit -n`");
}

TEST(CallIsolated, AnEndThatNobodyKnowsIsNoSuccess) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const IsolatedResult result =
      CallIsolated([]() -> std::string { std::abort(); }, {});
  ::signal(SIGCHLD, before);
  EXPECT_FALSE(result.completed);
  EXPECT_EQ(result.failure,
            "ended with an unknown status: this process ignores SIGCHLD");
}

TEST(CallIsolated, SurvivesAnExit) {
  for (const int status : {0, 3}) {
    const IsolatedResult result =
        CallIsolated([&]() -> std::string { ::_exit(status); }, {});
    EXPECT_FALSE(result.completed);
    EXPECT_EQ(result.failure,
              "ended with exit status " + std::to_string(status));
  }
}

TEST(CallIsolated, EndsWhatHangs) {
  const IsolatedResult result = CallIsolated(
      []() -> std::string {
        while (true) ::pause();
      },
      {.seconds = 0.1});
  EXPECT_FALSE(result.completed);
  EXPECT_EQ(result.failure, "ran longer than 0.1 s");
}

TEST(CallIsolated, EndsWhatClosesItsFilesAndHangs) {
  const IsolatedResult result = CallIsolated(
      []() -> std::string {
        ::close_range(3, ~0U, 0);
        while (true) ::pause();
      },
      {.seconds = 0.1});
  EXPECT_EQ(result.failure, "ran longer than 0.1 s");
}

TEST(CallIsolated, PassesOnTheMessageOfAnException) {
  const IsolatedResult result = CallIsolated(
      []() -> std::string { throw std::runtime_error("no good"); }, {});
  EXPECT_EQ(result.failure, "failed: no good");
}

// Returns how many pipes besides its outputs this process can write to.
std::string NumWritingEnds() {
  int count = 0;
  for (int file = 3; file < 256; ++file) {
    struct stat status;
    if (::fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) &&
        (::fcntl(file, F_GETFL) & O_ACCMODE) == O_WRONLY) {
      ++count;
    }
  }
  return std::to_string(count);
}

// A child with the end of another child's pipe would keep its caller waiting.
TEST(CallIsolated, ChildrenOfSeveralThreadsHaveTheirOwnPipesOnly) {
  const std::string alone = CallIsolated(NumWritingEnds, {}).value;
  std::vector<std::string> found(4, alone);
  {
    std::vector<std::jthread> threads;
    for (std::string& own : found) {
      threads.emplace_back([&own, &alone] {
        for (int i = 0; i < 40 && own == alone; ++i) {
          own = CallIsolated(NumWritingEnds, {}).value;
        }
      });
    }
  }
  EXPECT_EQ(found, std::vector<std::string>(4, alone));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CallIsolated, LimitsMemory) {
  const IsolatedResult result = CallIsolated(
      [] {
        std::vector<char> large(256 << 20, 'x');
        return std::string(1, large[large.size() / 2]);
      },
      {.memory_bytes = 64 << 20});
  EXPECT_EQ(result.failure, "needed more than 64 MiB of memory");
}
#endif

}  // namespace
}  // namespace softmoe
