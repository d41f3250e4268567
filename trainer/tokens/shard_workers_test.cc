// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/shard_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/errors.h"
#include "core/process/isolated_call.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

// `count` shards of 10 bytes, which have their numbers as names.
ShardList Shards(int64_t count, int64_t first = 0) {
  return [next = first, count](Shard* shard) mutable {
    if (next == count) return false;
    shard->name = std::to_string(next++);
    shard->bytes = 10;
    return true;
  };
}

// Takes shards in order until there are no more; returns how many there were.
int64_t WaitForAll(ShardWorkers* workers, int64_t first = 0) {
  using State = ShardWorkers::State;
  for (int64_t next = first;;) {
    const State state = workers->WaitFor(next);
    if (state == State::kNoMore) return next - first;
    if (state == State::kDone) ++next;
  }
}

TEST(ShardWorkers, WorkAtEachShardOnce) {
  for (const int threads : {1, 2, 7}) {
    std::mutex mutex;
    std::multiset<int64_t> worked;
    ShardWorkers workers(Shards(20, 3), 3, threads, [&] {
      return [&](const Shard& shard, int64_t index, const GoOn& go_on) {
        EXPECT_EQ(shard.name, std::to_string(index));
        EXPECT_TRUE(go_on(4));
        const std::lock_guard lock(mutex);
        worked.insert(index);
        return true;
      };
    });
    EXPECT_EQ(WaitForAll(&workers, 3), 17);
    EXPECT_EQ(worked.size(), 17u);
    EXPECT_EQ(std::set(worked.begin(), worked.end()).size(), 17u);
    EXPECT_EQ(workers.input_bytes(), 17 * 10);
  }
}

TEST(ShardWorkers, ATaskIsOfOneThread) {
  ShardWorkers workers(Shards(50), 0, 3, [] {
    return [thread = std::thread::id()](const Shard&, int64_t,
                                        const GoOn&) mutable {
      if (thread == std::thread::id()) thread = std::this_thread::get_id();
      EXPECT_EQ(thread, std::this_thread::get_id());
      return true;
    };
  });
  EXPECT_EQ(WaitForAll(&workers), 50);
}

// Shard 2 fails while shard 1, which fails later, is still worked on.
TEST(ShardWorkers, TheFirstShardThatFailsIsReported) {
  std::promise<void> failed;
  const auto wait = failed.get_future().share();
  ShardWorkers workers(Shards(9), 0, 2, [&] {
    return [&, wait](const Shard& shard, int64_t index, const GoOn& go_on) {
      if (index == 2) {
        failed.set_value();
        throw DataError("bad " + shard.name);
      }
      if (index == 1) {
        wait.wait();
        EXPECT_TRUE(go_on(0));
        throw DataError("bad " + shard.name);
      }
      EXPECT_EQ(index, 0);
      return true;
    };
  });
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { WaitForAll(&workers); }), "bad 1"));
}

// The other thread waits for its turn while the list fails. What it would ask
// has failed, and might go on behind the damage, or fail for another reason.
TEST(ShardWorkers, AListThatHasFailedIsNotAskedAgain) {
  std::atomic<int> asked = 0;
  // Gives the other thread the time to ask, after the list has failed.
  const auto linger = [&asked](int*) {
    for (int i = 0; i < 100 && asked == 1; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const auto list = [&](Shard* shard) -> bool {
    ++asked;
    if (asked > 1) throw DataError("asked again");
    shard->open = [held = std::shared_ptr<int>(nullptr, linger)] {
      return nullptr;
    };
    throw DataError("the archive is damaged");
  };
  ShardWorkers workers(list, 0, 2, [] {
    return [](const Shard&, int64_t, const GoOn&) { return true; };
  });
  EXPECT_EQ(MessageOf<DataError>([&] { WaitForAll(&workers); }),
            "the archive is damaged");
  EXPECT_EQ(asked, 1);
}

TEST(ShardWorkers, EndWhatTheyAreAt) {
  std::promise<void> begun;
  {
    ShardWorkers workers(Shards(9), 0, 1, [&] {
      return [&](const Shard&, int64_t index, const GoOn& go_on) {
        EXPECT_EQ(index, 0);
        go_on(25);  // of 10 bytes
        begun.set_value();
        while (go_on(25)) std::this_thread::yield();
        return false;
      };
    });
    begun.get_future().wait();
    EXPECT_EQ(workers.WaitFor(0), ShardWorkers::State::kWaiting);
    EXPECT_EQ(workers.input_bytes(), 10);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In a process without room in memory for the stacks of all threads.
TEST(ShardWorkers, EndIfOneCannotBeStarted) {
  const auto start = []() -> std::string {
    try {
      const ShardWorkers workers(Shards(1000), 0, 1000, [] {
        return [](const Shard&, int64_t, const GoOn& go_on) {
          while (go_on(5)) std::this_thread::yield();
          return false;
        };
      });
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
}  // namespace softmoe::trainer
