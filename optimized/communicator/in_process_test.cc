// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/in_process.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/process/isolated_call.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/testing/communicator_checks.h"

namespace {

// How many more allocations of this thread succeed (negative: all), and whether
// only the one after them fails.
thread_local int64_t allocations_left = -1;
thread_local bool one_fails = false;

}  // namespace

void* operator new(std::size_t size) {
  if (allocations_left == 0) {
    if (one_fails) allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace softmoe::optimized {
namespace {

RC_GTEST_PROP(InProcessRanks, GiveWhatEveryOperationPromises, ()) {
  const int ranks = *rc::gen::inRange(1, 9);
  const auto seed = *rc::gen::arbitrary<uint32_t>();
  RunInProcessRanks(ranks,
                    [seed](Communicator& c) { CheckOperations(c, seed); });
}

TEST(SingleCommunicator, GivesWhatEveryOperationPromises) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SingleCommunicator alone;
    alone.Run([&] { CheckOperations(alone, seed); });
    EXPECT_EQ(alone.sent_bytes(), 0);
  }
}

TEST(SingleCommunicator, AgreesWithItself) {
  SingleCommunicator alone;
  alone.Agree({{{"code version", "unknown"}}});
}

TEST(InProcessRanks, NameEveryMistakeOnEveryRank) {
  for (const int ranks : {2, 3, 5}) {
    for (const Mistake& mistake : Mistakes(ranks)) {
      std::vector<std::string> wrong(static_cast<size_t>(ranks), "not asked");
      // The mistake breaks the communicator, so the outer Run throws as well.
      EXPECT_ANY_THROW(RunInProcessRanks(ranks, [&](Communicator& c) {
        wrong[static_cast<size_t>(c.rank())] = CheckMistake(c, mistake);
      })) << mistake.name;
      for (const std::string& text : wrong) EXPECT_EQ(text, "");
    }
  }
}

TEST(InProcessRanks, ThrowWhatARankThrewNotWhatOthersSayOfIt) {
  for (const int failing : {0, 2}) {
    try {
      RunInProcessRanks(3, [&](Communicator& c) {
        if (c.rank() == failing) throw DataError("token 7");
        EXPECT_EQ(MessageOf<RankError>([&] { c.Barrier(); }),
                  "rank " + std::to_string(failing) + " failed: token 7");
      });
      FAIL() << "no exception";
    } catch (const RankError&) {
      FAIL() << "the error of another rank";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "token 7");
    }
  }
}

TEST(InProcessRanks, ThrowTheFailureOfTheLowestRank) {
  EXPECT_EQ(MessageOf<DataError>([&] {
              RunInProcessRanks(4, [](Communicator& c) {
                if (c.rank() % 2 == 1)
                  throw DataError("of " + std::to_string(c.rank()));
                c.Barrier();
              });
            }),
            "of 1");
}

// How three ranks end an operation of each kind if rank 1 runs out of memory
// after `allocations` allocations, once; or rank 0, for good.
std::string OutOfMemoryAfter(int64_t allocations, bool for_good) {
  try {
    RunInProcessRanks(3, [=](Communicator& c) {
      c.Barrier();
      one_fails = !for_good;
      if (c.rank() == (for_good ? 0 : 1)) allocations_left = allocations;
      const Shards shards = ShareOut(6, 1, 3);
      std::vector<float> data(6);
      c.Broadcast<float>(data, 1);
      c.Gather<float>(shards, data);
      std::vector<float> received(6);
      c.Exchange<float>(PartsOf(std::span<const float>(data), shards),
                        PartsOf(std::span(received), Rows(2, 3)));
      c.Agree({{{"configuration", "the same on every rank"}}});
    });
  } catch (const std::bad_alloc&) {
    return "out of memory";
  }
  return "";
}

// In a child process, where ranks that wait forever are found.
TEST(InProcessRanks, EndWithOneThatFailsInsideOfAnOperation) {
  for (const bool for_good : {false, true}) {
    const auto fail_everywhere = [for_good]() -> std::string {
      int64_t failures = 0;
      while (!OutOfMemoryAfter(failures, for_good).empty()) ++failures;
      return failures > 20 ? "all ended" : "no memory was needed";
    };
    const IsolatedResult result = CallIsolated(
        fail_everywhere, {.memory_bytes = int64_t{8} << 30, .seconds = 30});
    EXPECT_EQ(result.value, "all ended") << result.failure;
  }
}

// In a process whose memory has no room for the stacks of all threads.
TEST(InProcessRanks, DoNotBeginIfOneCannotBeStarted) {
  const auto start = []() -> std::string {
    std::atomic<int> begun{0};
    try {
      RunInProcessRanks(1000, [&](Communicator&) { ++begun; });
    } catch (const std::system_error&) {
      return "refused, " + std::to_string(begun) + " begun";
    }
    return "no exception";
  };
  const IsolatedResult result =
      CallIsolated(start, {.memory_bytes = int64_t{64} << 20});
  EXPECT_EQ(result.value, "refused, 0 begun") << result.failure;
}

TEST(InProcessRanks, HaveAThreadPoolEach) {
  RunInProcessRanks(4, [](Communicator& c) {
    ThreadPool pool(2);
    std::vector<int64_t> squares(100);
    for (int round = 0; round < 20; ++round) {
      pool.ParallelFor(100, [&](int64_t i) { squares[i] = i * i + c.rank(); });
      c.Broadcast<int64_t>(squares, round % 4);
      SOFTMOE_CHECK(squares[9] == 81 + round % 4) << squares[9];
    }
  });
}

TEST(InProcessRanks, RefuseArraysThatDoNotFitTheirShards) {
  const auto refused = [](auto&& call) {
    EXPECT_THROW(RunInProcessRanks(2, call), InternalError);
  };
  refused([](Communicator& c) {
    std::vector<float> data(7);
    c.Gather<float>(ShareOut(8, 1, 2), data);
  });
  refused([](Communicator& c) {
    std::vector<float> data(8);
    c.Gather<float>(ShareOut(8, 1, 3), data);
  });
  refused([](Communicator& c) {
    std::vector<float> data(8);
    c.Gather<float>(ShareOut(8, 1, 2), data, 2);
  });
  refused([](Communicator& c) {
    const std::vector<float> data(8);
    std::vector<float> received(7);
    c.Exchange<float>(PartsOf(std::span(data), ShareOut(8, 1, 2)),
                      PartsOf(std::span(received), {{0, 4}, {4, 7}}));
  });
  refused([](Communicator& c) {
    const std::vector<float> data(8);
    c.Exchange<float>(PartsOf(std::span(data), ShareOut(8, 1, 2)), {});
  });
  refused([](Communicator& c) {
    std::vector<float> data(8);
    c.Broadcast<float>(data, -1);
  });
  EXPECT_THROW(RunInProcessRanks(0, [](Communicator&) {}), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized
