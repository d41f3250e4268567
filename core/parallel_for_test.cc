// SPDX-License-Identifier: Apache-2.0
#include "core/parallel_for.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include "core/errors.h"
#include "core/process/isolated_call.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

TEST(ParallelFor, RunsEveryTaskExactlyOnceForAnyThreadCount) {
  for (int threads = 1; threads <= 9; ++threads) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t tasks : {0, 1, 2, 7, 8, 9, 1000}) {
      std::vector<int> runs(tasks, 0);
      pool.ParallelFor(tasks, [&](int64_t i) { ++runs[i]; });
      EXPECT_EQ(runs, std::vector<int>(tasks, 1)) << threads << " threads";
    }
  }
}

TEST(ParallelFor, ManyShortJobsInARow) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(16, 0);
  for (int job = 0; job < 20000; ++job) {
    pool.ParallelFor(16, [&](int64_t i) { sums[i] += i; });
  }
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(sums[i], 20000 * i);
}

TEST(ParallelFor, BlocksDoNotDependOnTheNumberOfThreads) {
  for (int threads : {1, 3, 4}) {
    ThreadPool pool(threads);
    std::vector<int64_t> ends(3, -1);
    pool.ParallelForBlocks(
        25, 10, [&](int64_t begin, int64_t end) { ends[begin / 10] = end; });
    EXPECT_EQ(ends, (std::vector<int64_t>{10, 20, 25}));
  }
}

TEST(ParallelFor, RethrowsTheFailureOfTheLowestTask) {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(MessageOf<DataError>([&] {
                pool.ParallelFor(100, [](int64_t i) {
                  if (i % 30 == 29)
                    throw DataError("task " + std::to_string(i));
                });
              }),
              "task 29");
    std::vector<int> runs(8, 0);  // and the pool still works
    pool.ParallelFor(8, [&](int64_t i) { ++runs[i]; });
    EXPECT_EQ(std::accumulate(runs.begin(), runs.end(), 0), 8);
  }
}

TEST(ParallelFor, NestedCallsStayInTheirThread) {
  ThreadPool pool(4);
  std::vector<int> runs(12, 0);
  pool.ParallelFor(3, [&](int64_t i) {
    const auto self = std::this_thread::get_id();
    pool.ParallelFor(4, [&](int64_t j) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      ++runs[4 * i + j];
    });
  });
  EXPECT_EQ(runs, std::vector<int>(12, 1));
}

TEST(ParallelFor, NegativeThreadCountIsRefused) {
  EXPECT_THROW(ThreadPool(-1), InternalError);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Runs in a process whose memory has no room for the stacks of all threads.
TEST(ParallelFor, EndsItsWorkersIfOneCannotBeStarted) {
  const auto start = []() -> std::string {
    try {
      const ThreadPool pool(1000);
    } catch (const std::system_error&) {
      return "refused";
    }
    return "no exception";
  };
  const IsolatedResult result =
      CallIsolated(start, {.memory_bytes = int64_t{64} << 20});
  EXPECT_EQ(result.value, "refused") << result.failure;
}
#endif

}  // namespace
}  // namespace softmoe
