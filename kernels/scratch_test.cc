// SPDX-License-Identifier: Apache-2.0
#include "kernels/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::kernels {
namespace {

TEST(Scratch, PartsBeginAtMultiplesOf16Floats) {
  EXPECT_EQ(AlignedFloats(0), 0);
  EXPECT_EQ(AlignedFloats(1), 16);
  EXPECT_EQ(AlignedFloats(16), 16);
  EXPECT_EQ(AlignedFloats(17), 32);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The floats from `data` to the end of its page, where the heap of these tests
// (guarded_heap.cc) lets every array end.
int64_t FloatsOf(const float* data) {
  return static_cast<int64_t>(4096 - reinterpret_cast<uintptr_t>(data) % 4096) /
         4;
}

// In a thread of its own, which has asked for nothing yet.
TEST(Scratch, GrowsByHalfAndNeverShrinks) {
  const auto task = [](int64_t floats) {
    return ThreadScratch(ScratchSlot::kTask, floats);
  };
  std::jthread([&] {
    float* const call = ThreadScratch(ScratchSlot::kCall, 20);
    EXPECT_EQ(FloatsOf(call), 32);  // 20, were it not aligned
    std::fill_n(call, 20, 1.0f);
    EXPECT_EQ(FloatsOf(task(32)), 32);
    EXPECT_EQ(FloatsOf(task(32)), 32);
    EXPECT_EQ(FloatsOf(task(33)), 64);  // 33 + 16, rounded up
    EXPECT_EQ(FloatsOf(task(64)), 64);
    float* const largest = task(65);
    EXPECT_EQ(FloatsOf(largest), 112);  // 65 + 32, rounded up
    std::fill_n(largest, 112, 2.0f);
    EXPECT_EQ(task(1), largest);
    EXPECT_EQ(ThreadScratch(ScratchSlot::kCall, 20), call);
    EXPECT_EQ(std::count(call, call + 20, 1.0f), 20);
    std::jthread([&] { EXPECT_EQ(FloatsOf(task(16)), 16); }).join();
    EXPECT_EQ(std::count(largest, largest + 112, 2.0f), 112);
  }).join();
}

// What there was is released before, so it begins anew afterwards.
TEST(Scratch, SaysHowMuchItLacksAndBeginsAnew) {
  std::jthread([] {
    const auto call = [](int64_t floats) {
      return ThreadScratch(ScratchSlot::kCall, floats);
    };
    EXPECT_EQ(FloatsOf(call(32)), 32);
    // One and a half times 2^60 floats of 4 bytes.
    EXPECT_EQ(MessageOf<EnvironmentError>([&] { call(int64_t{1} << 60); }),
              "out of memory: a kernel needs 6597069766656 MiB of working "
              "memory; use a smaller model or fewer sequences per balance "
              "group");
    EXPECT_EQ(FloatsOf(call(48)), 48);
  }).join();
}
#endif

}  // namespace
}  // namespace softmoe::kernels
