// SPDX-License-Identifier: Apache-2.0
#include "optimized/device_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/products.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "optimized/backend.h"
#include "optimized/buffer.h"
#include "optimized/product.h"
#include "optimized/testing/simulated_devices.h"

namespace softmoe::optimized {
namespace {

using SentArrays = SimulatedDevices;
using QueuesOfAChoice = SimulatedDevices;

// The device holds each array until the next is sent, although nobody waits in
// between; some are larger than all before. (The simulated device detects a
// host that frees, or writes to, memory yet to be copied.)
TEST_F(SentArrays, ArriveWithoutAWaitOfTheHost) {
  constexpr int64_t kSizes[] = {3, 5, 700, 2, 1000, 1000};
  constexpr int64_t kLargest = 1000, kSends = std::size(kSizes);
  const auto value = [](int64_t send, int64_t i) {
    return static_cast<int32_t>(10000 * send + i);
  };
  for (const auto schedule :
       {simt::Schedule::kAscending, simt::Schedule::kDescending,
        simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 3);
    const auto queue =
        device::MakeQueue(device::DeviceStream(), /*workspace=*/1 << 16);
    SentArray<int32_t> sent;
    const Buffer<int32_t> copy(kLargest), all(kSends * kLargest);
    for (int64_t send = 0; send < kSends; ++send) {
      std::vector<int32_t> values(static_cast<size_t>(kSizes[send]));
      for (int64_t i = 0; i < kSizes[send]; ++i) values[i] = value(send, i);
      const int32_t* const there =
          sent.Send(*queue, std::span<const int32_t>(values), copy.data());
      CopyArray(*queue, kSizes[send], there, all.data() + send * kLargest);
    }
    std::vector<int32_t> arrived(kSends * kLargest);
    ReadArray<int32_t>(*queue, all.data(), arrived);
    for (int64_t send = 0; send < kSends; ++send) {
      for (int64_t i = 0; i < kSizes[send]; ++i) {
        ASSERT_EQ(arrived[send * kLargest + i], value(send, i));
      }
    }
  }
}

// Two arrays may be on their way: the host waits no earlier than it must.
TEST_F(SentArrays, WaitForTheLastButOne) {
  const auto queue =
      device::MakeQueue(device::DeviceStream(), /*workspace=*/1 << 16);
  SentArray<int32_t> sent;
  const Buffer<int32_t> copy(4);
  const std::vector<int32_t> values = {1, 2, 3, 4};
  const auto waits = [&](int sends) {
    const int before = simt::CallsOf("cudaEventSynchronize");
    for (int i = 0; i < sends; ++i) {
      (void)sent.Send(*queue, std::span<const int32_t>(values), copy.data());
    }
    const int after = simt::CallsOf("cudaEventSynchronize");
    Finish(*queue);
    return after - before;
  };
  EXPECT_EQ(waits(2), 0);
  EXPECT_EQ(waits(1), 0);
  EXPECT_EQ(waits(2), 0);
  EXPECT_EQ(waits(3), 1);
}

// The library's heuristic knows fewer algorithms for some products than for
// others: that is a fact about the library, not a defect of ours.
TEST_F(QueuesOfAChoice, SayThatThereAreFewerAlgorithms) {
  const auto queue = device::MakeQueueOfChoice(
      device::DeviceStream(), kernels::kProductChoices - 1, 1 << 16);
  const Buffer<float> a(64), b(64), c(64);
  int lacking = 0;
  for (int64_t n = 1; n <= 8; ++n) {
    try {
      device::Gemm(
          DenseProduct(a.data(), b.data(), c.data(), {.m = 8, .n = n, .k = 8}),
          *queue);
    } catch (const EnvironmentError& error) {
      EXPECT_TRUE(Says(error.what(), "algorithms for this product",
                       "number 7, from 0, was asked for"));
      ++lacking;
    }
  }
  EXPECT_GT(lacking, 0);
  Finish(*queue);
}

}  // namespace
}  // namespace softmoe::optimized
