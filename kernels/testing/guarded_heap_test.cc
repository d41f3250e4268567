// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

namespace softmoe {
namespace {

// Opaque to the optimiser.
float ReadAt(const std::vector<float>& values, int64_t i) {
  const volatile float* data = values.data();
  return data[i];
}

TEST(GuardedHeap, HoldsWhatIsWrittenOnIt) {
  for (const size_t size : {1, 3, 4, 1000, 5000}) {
    std::vector<float> values(size, 2.0f);
    values.push_back(3.0f);
    EXPECT_EQ(ReadAt(values, static_cast<int64_t>(size) - 1), 2.0f);
    EXPECT_EQ(values.back(), 3.0f);
  }
  struct alignas(256) Aligned {
    char bytes[300];
  };
  const auto aligned = std::make_unique<Aligned[]>(3);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.get()) % 256, 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(GuardedHeap, IsNaNBeforeItIsWritten) {
  for (int round = 0; round < 2; ++round) {
    const auto values = std::make_unique_for_overwrite<float[]>(2000);
    const volatile float* data = values.get();
    for (int i = 0; i < 2000; ++i) EXPECT_TRUE(std::isnan(data[i])) << i;
  }
}

TEST(GuardedHeap, GoesOnWhereNoMappingsAreLeft) {
  // More than Linux allows by default.
  std::vector<std::unique_ptr<std::vector<int>>> arrays;
  for (int i = 0; i < 40000; ++i) {
    arrays.push_back(std::make_unique<std::vector<int>>(1, i));
  }
  for (int i = 0; i < 40000; ++i) EXPECT_EQ(arrays[i]->front(), i);
}

TEST(GuardedHeapDeathTest, EndsWhatReadsPastAnArray) {
  for (const size_t size : {4, 1024, 1028}) {
    const std::vector<float> values(size);
    EXPECT_DEATH(ReadAt(values, static_cast<int64_t>(size)), "") << size;
  }
}

TEST(GuardedHeapDeathTest, EndsWhatReadsAFreedArray) {
  const auto read_freed = [] {
    // A pointer of which the compiler knows nothing.
    const float* volatile pointer = nullptr;
    {
      const std::vector<float> values(100);
      pointer = values.data();
    }
    const volatile float* freed = pointer;
    return *freed;
  };
  EXPECT_DEATH((void)read_freed(), "");
}
#endif

}  // namespace
}  // namespace softmoe
