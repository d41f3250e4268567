// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_workers.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::experiments {
namespace {

// The codes of RunMain: what the machine lacks is no failed self-check.
TEST(GridWorkers, EndWithTheCodeOfWhatTheyThrow) {
  const auto end_of = [](const std::function<bool()>& body) {
    GridWorkers workers;
    workers.Start(3, body);
    std::vector<WorkerEnd> ends;
    while (ends.empty()) ends = workers.Wait();
    return ends.front();
  };
  const WorkerEnd done = end_of([] { return true; });
  EXPECT_EQ(done.job, 3u);
  EXPECT_EQ(done.code, ExitCode::kDone);
  EXPECT_TRUE(done.done);
  EXPECT_FALSE(end_of([] { return false; }).done);
  const WorkerEnd memory = end_of([]() -> bool { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code, ExitCode::kEnvironment);
  EXPECT_TRUE(Says(memory.problem, "out of memory"));
  const WorkerEnd file =
      end_of([] { return std::filesystem::file_size("/absent/file") > 0; });
  EXPECT_EQ(file.code, ExitCode::kEnvironment);
  EXPECT_TRUE(Says(file.problem, "/absent/file"));
  const WorkerEnd bug =
      end_of([]() -> bool { throw std::logic_error("surprise"); });
  EXPECT_EQ(bug.code, ExitCode::kSelfCheck);
  EXPECT_TRUE(Says(bug.problem, "surprise"));
  // Asked to stop before it could handle the signal.
  const WorkerEnd early = end_of([]() -> bool {
    signal(SIGUSR1, SIG_DFL);
    return raise(SIGUSR1) == 0;
  });
  EXPECT_EQ(early.code, ExitCode::kStopped);
  const auto before = signal(SIGCHLD, SIG_IGN);
  const WorkerEnd lost = end_of([] { return true; });
  signal(SIGCHLD, before);
  EXPECT_EQ(lost.code, ExitCode::kEnvironment);
  EXPECT_TRUE(Says(lost.problem, "it is unknown"));
}

}  // namespace
}  // namespace softmoe::experiments
