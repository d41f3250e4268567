// SPDX-License-Identifier: Apache-2.0
//
// Gradients over the simulated NCCL, a piece of each shard at a time: whatever
// the pieces and the schedule, the sum is that along the tree.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "core/testing/random_test_util.h"
#include "kernels/cuda/device.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "optimized/buffer.h"
#include "optimized/communicator/in_process.h"
#include "optimized/gradient_exchange.h"
#include "optimized/testing/simulated_devices.h"

namespace softmoe::optimized {
namespace {

using Floats = std::vector<float>;

Floats Partial(int rank, int round, int64_t size) {
  return FloatsOfManyBinades(size, {.seed = 5,
                                    .step = static_cast<uint32_t>(round),
                                    .layer = static_cast<uint32_t>(rank)});
}

// The definition, taken literally.
Floats SumOverRanks(int begin, int end, int round, int64_t size) {
  if (end - begin == 1) return Partial(begin, round, size);
  const int middle = begin + (end - begin) / 2;
  Floats sum = SumOverRanks(begin, middle, round, size);
  const Floats right = SumOverRanks(middle, end, round, size);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

// Two buckets, cut after the second block: the later one first.
std::vector<Bucket> TwoBuckets(int64_t size, int ranks) {
  constexpr int64_t kCut = 2 * 4096;
  return {{Shifted(ShareOut(size - kCut, 4096, ranks), kCut), kCut},
          {ShareOut(kCut, 4096, ranks), 0}};
}

// The second of two sums by `ranks` ranks with a device each. Nobody waits
// between what writes the gradients, what sums them and what reads the sums.
Floats SumOverNccl(int ranks, int64_t size, int64_t piece) {
  simt::SetDeviceLimits({.devices = ranks});
  Floats whole(static_cast<size_t>(size), NAN);
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    device::UseDevice(communicator.rank());
    CUstream_st* const stream = device::MakeStream();
    {
      const auto queue = device::MakeQueue(stream, /*workspace=*/1 << 16);
      GradientExchange exchange(TwoBuckets(size, ranks), piece,
                                CarrierKind::kNccl, communicator, *queue);
      const Buffer<float> partials(2 * size), gradient(size), sums(size);
      for (int round = 0; round < 2; ++round) {
        WriteArray<float>(*queue, Partial(communicator.rank(), round, size),
                          partials.data() + round * size);
      }
      const Shard late = {exchange.buckets()[0].begin(), size};
      const Shard early = {0, late.begin};
      for (int round = 0; round < 2; ++round) {
        const auto compute = [&](const Shard& part) {
          CopyArray(*queue, part.size(),
                    partials.data() + round * size + part.begin,
                    gradient.data() + part.begin);
        };
        compute(late);
        exchange.SumDownTo(late.begin, gradient.span());
        compute(early);
        exchange.Finish(gradient.span());
        CopyArray(*queue, size, gradient.data(), sums.data());
      }
      exchange.carrier().Finish();
      for (const PackedPiece& own :
           PiecesOfRank(exchange.buckets(), communicator.rank())) {
        ReadArray<float>(*queue, sums.data() + own.offset,
                         PartOf(std::span(whole), own.range()));
      }
    }
    device::FreeStream(stream);
  });
  return whole;
}

using SimulatedExchange = SimulatedDevices;

TEST_F(SimulatedExchange, AddsTheRanksAlongTheTreeInPieces) {
  // More than four blocks of the norm, so that shards differ in size.
  constexpr int64_t kSize = 4 * 4096 + 77;
  for (const int ranks : {2, 3}) {
    const Floats expected = SumOverRanks(0, ranks, /*round=*/1, kSize);
    for (const int64_t piece : {int64_t{3001}, int64_t{4096}, kSize}) {
      EXPECT_TRUE(SumOverNccl(ranks, kSize, piece) == expected)
          << ranks << " ranks, pieces of " << piece;
    }
  }
}

TEST_F(SimulatedExchange, AddsThemSoInEverySchedule) {
  constexpr int64_t kSize = 3 * 4096;
  const Floats expected = SumOverRanks(0, 3, /*round=*/1, kSize);
  for (const auto schedule :
       {simt::Schedule::kDescending, simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 3);
    EXPECT_TRUE(SumOverNccl(3, kSize, 1500) == expected);
  }
}

}  // namespace
}  // namespace softmoe::optimized
