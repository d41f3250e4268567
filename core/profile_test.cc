// SPDX-License-Identifier: Apache-2.0
#include "core/profile.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"

namespace softmoe {
namespace {

// Takes at least a microsecond by the profile's clock.
void Work() {
  const int64_t start = Profile::Nanoseconds();
  while (Profile::Nanoseconds() - start < 1000) {
  }
}

TEST(Profile, AddsUpOperationsInTheOrderInWhichTheyFirstBegan) {
  Profile profile;
  BeginOperation("b", {.flops = 10});
  Work();
  BeginOperation("a", {.bytes = 4});
  BeginOperation("b", {.flops = 5});
  Work();
  const std::vector<OperationTime> operations = profile.Take();
  ASSERT_EQ(operations.size(), 2u);
  EXPECT_EQ(operations[0].name, "b");
  EXPECT_EQ(operations[0].calls, 2);
  EXPECT_EQ(operations[0].work.flops, 15);
  EXPECT_GE(operations[0].seconds, 2e-6);  // twice Work
  EXPECT_EQ(operations[1].name, "a");
  EXPECT_EQ(operations[1].work.bytes, 4);
  EXPECT_TRUE(profile.Take().empty());
  BeginOperation("a");
  EXPECT_EQ(profile.Take().size(), 1u);
}

// Four tasks of Work on two threads: all of their time is in tasks, none of it
// serial. Work outside jobs is serial.
TEST(Profile, TellsTasksFromSerialCode) {
  ThreadPool pool(2);
  Profile profile;
  BeginOperation("parallel");
  pool.ParallelFor(4, [](int64_t) { Work(); });
  BeginOperation("serial");
  Work();
  BeginOperation("one task");  // the pool leaves it to the caller
  pool.ParallelFor(1, [](int64_t) { Work(); });
  const std::vector<OperationTime> operations = profile.Take();
  ASSERT_EQ(operations.size(), 3u);
  const OperationTime& parallel = operations[0];
  EXPECT_GE(parallel.task_seconds, 4e-6);
  EXPECT_GT(parallel.job_seconds, 0);
  EXPECT_LE(parallel.job_seconds, parallel.seconds);
  // The threads are busy or wait: neither can be negative.
  EXPECT_GE(parallel.WaitSeconds(2), 0);
  EXPECT_GE(parallel.SerialSeconds(), 0);
  for (const size_t serial : {size_t{1}, size_t{2}}) {
    EXPECT_EQ(operations[serial].job_seconds, 0);
    EXPECT_EQ(operations[serial].task_seconds, 0);
    EXPECT_EQ(operations[serial].SerialSeconds(), operations[serial].seconds);
    EXPECT_GE(operations[serial].seconds, 1e-6);
  }
}

TEST(Profile, CountsAsWaitingWhatThreadsDoNotSpendInTasks) {
  const OperationTime uneven{
      .seconds = 5, .job_seconds = 4, .task_seconds = 13};
  EXPECT_EQ(uneven.WaitSeconds(4), 3);
  EXPECT_EQ(uneven.SerialSeconds(), 1);
}

TEST(Profile, IsOneAtATimeAndNoneByDefault) {
  EXPECT_EQ(Profile::Active(), nullptr);
  BeginOperation("nobody looks");
  {
    Profile profile;
    EXPECT_EQ(Profile::Active(), &profile);
    EXPECT_THROW(Profile(), InternalError);
    EXPECT_EQ(Profile::Active(), &profile);
  }
  EXPECT_EQ(Profile::Active(), nullptr);
  EXPECT_TRUE(Profile().Take().empty());
}

}  // namespace
}  // namespace softmoe
