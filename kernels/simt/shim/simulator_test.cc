// SPDX-License-Identifier: Apache-2.0
//
// What the simulator promises to a correct program: indices, shuffles, votes,
// shared memory, products, schedules. What it refuses is in
// planted_bugs_test.cc.
#include "kernels/simt/shim/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/simt/device/include/cuda_runtime.h"
#include "kernels/simt/shared_memory.h"

namespace softmoe::simt {
namespace {

// What cudaFuncSetAttribute would have allowed.
size_t allowed_dynamic_shared = 0;

// Runs kernel(arguments...); returns what is wrong, or "".
template <typename... Parameters, typename... Arguments>
std::string Launch(dim3 blocks, dim3 threads, size_t shared,
                   void (*kernel)(Parameters...), Arguments... arguments) {
  Grid grid;
  grid.blocks = {blocks.x, blocks.y, blocks.z};
  grid.threads = {threads.x, threads.y, threads.z};
  grid.dynamic_shared = shared;
  grid.dynamic_shared_limit = allowed_dynamic_shared;
  const char* wrong = RunKernel(grid, kernel, arguments...);
  return wrong == nullptr ? "" : wrong;
}

class Simulator : public testing::TestWithParam<Schedule> {
 protected:
  Simulator() { SetSchedule(GetParam(), 5); }
};
INSTANTIATE_TEST_SUITE_P(EverySchedule, Simulator,
                         testing::Values(Schedule::kAscending,
                                         Schedule::kDescending,
                                         Schedule::kRandom));

__global__ void CountVisits(int* visits) {
  const unsigned block =
      (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread =
      (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  ++visits[block * blockDim.x * blockDim.y * blockDim.z + thread];
}

TEST_P(Simulator, VisitsEveryIndexOfAThreeDimensionalGridOnce) {
  std::vector<int> visits(2 * 3 * 4 * 5 * 6 * 7);
  EXPECT_EQ(Launch({2, 3, 4}, {5, 6, 7}, 0, CountVisits, visits.data()), "");
  EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
  std::vector<int> full(1024);
  EXPECT_EQ(Launch({1}, {1024}, 0, CountVisits, full.data()), "");
  EXPECT_EQ(full, std::vector<int>(1024, 1));
}

TEST_P(Simulator, RefusesGridsThatNoDeviceTakes) {
  int unused = 0;
  for (const auto& [grid, block] :
       std::vector<std::pair<dim3, dim3>>{{1, 1025}, {1, 0}, {0, 32}}) {
    EXPECT_NE(Launch(grid, block, 0, CountVisits, &unused), "");
  }
}

// CUDA C++ Programming Guide, warp shuffle functions.
__global__ void Shuffles(int width, int* out) {
  const int lane = threadIdx.x % 32;
  int* mine = out + threadIdx.x * 6;
  mine[0] = __shfl_sync(0xffffffffu, 100 + lane, 5, width);
  mine[1] = __shfl_up_sync(0xffffffffu, 100 + lane, 3, width);
  mine[2] = __shfl_down_sync(0xffffffffu, 100 + lane, 3, width);
  mine[3] = __shfl_xor_sync(0xffffffffu, 100 + lane, 6, width);
  mine[4] = static_cast<int>(
      __shfl_xor_sync(0xffffffffu, static_cast<double>(lane) + 0.5, 1) * 2);
  mine[5] = __shfl_sync(0xffffffffu, lane, -1, width);
}

TEST_P(Simulator, ShufflesWithinSegmentsOfTheirWidth) {
  for (const int width : {32, 8, 4}) {
    std::vector<int> out(64 * 6);
    ASSERT_EQ(Launch({1}, {64}, 0, Shuffles, width, out.data()), "");
    for (int t = 0; t < 64; ++t) {
      const int lane = t % 32, base = lane / width * width, in = lane - base;
      const int* mine = &out[t * 6];
      EXPECT_EQ(mine[0], 100 + base + 5 % width);
      EXPECT_EQ(mine[1], 100 + (in >= 3 ? lane - 3 : lane));
      EXPECT_EQ(mine[2], 100 + (in + 3 < width ? lane + 3 : lane));
      // Beyond its segment a lane gets its own value, but can read lower ones.
      EXPECT_EQ(mine[3], 100 + ((lane ^ 6) < base + width ? lane ^ 6 : lane));
      EXPECT_EQ(mine[4], 2 * (lane ^ 1) + 1);
      EXPECT_EQ(mine[5], base + width - 1);
    }
  }
}

__global__ void Votes(unsigned* out) {
  const int lane = threadIdx.x % 32;
  out[threadIdx.x * 4] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  out[threadIdx.x * 4 + 1] = __any_sync(0xffffffffu, lane == 31);
  out[threadIdx.x * 4 + 2] = __all_sync(0xffffffffu, lane < 31);
  // Votes of two halves at the same time.
  const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  out[threadIdx.x * 4 + 3] = __ballot_sync(half, lane % 2);
}

TEST_P(Simulator, CountsVotesOfTheMaskOnly) {
  std::vector<unsigned> out(64 * 4);
  ASSERT_EQ(Launch({1}, {64}, 0, Votes, out.data()), "");
  for (int t = 0; t < 64; ++t) {
    EXPECT_EQ(out[t * 4], 0x49249249u);
    EXPECT_EQ(out[t * 4 + 1], 1u);
    EXPECT_EQ(out[t * 4 + 2], 0u);
    EXPECT_EQ(out[t * 4 + 3], t % 32 < 16 ? 0x0000aaaau : 0xaaaa0000u);
  }
}

__global__ void UseShared(int* out) {
  SOFTMOE_SHARED(int, one, [2][3]);
  SOFTMOE_SHARED(int, other, [4]);
  SOFTMOE_DYNAMIC_SHARED(int, dynamic);
  const int t = threadIdx.x;
  // Before any write: all bits one, and no value of the previous block.
  out[t * 3] = one[1][t % 3] + other[t % 4] + dynamic[t];
  __syncthreads();
  if (t == 0) one[1][2] = 7;
  if (t == 1) other[0] = 8;
  dynamic[t] = 100 + t;
  __syncthreads();
  out[t * 3 + 1] = one[1][2] * 10 + other[0];
  out[t * 3 + 2] = dynamic[blockDim.x - 1 - t];
}

TEST_P(Simulator, GivesEachBlockItsOwnSharedMemory) {
  constexpr int kThreads = 40;
  for (int launch = 0; launch < 2; ++launch) {
    std::vector<int> out(kThreads * 3);
    ASSERT_EQ(
        Launch({3}, {kThreads}, kThreads * sizeof(int), UseShared, out.data()),
        "");
    for (int t = 0; t < kThreads; ++t) {
      EXPECT_EQ(out[t * 3], -3);
      EXPECT_EQ(out[t * 3 + 1], 78);
      EXPECT_EQ(out[t * 3 + 2], 100 + kThreads - 1 - t);
    }
  }
}

__global__ void FillShared(int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, dynamic);
  dynamic[threadIdx.x] = 1;
  out[threadIdx.x] = dynamic[threadIdx.x];
}

TEST_P(Simulator, GivesMoreThan48KiBOnlyToThoseWhoAsked) {
  int out = 0;
  EXPECT_EQ(Launch({1}, {1}, 48 * 1024, FillShared, &out), "");
  EXPECT_NE(Launch({1}, {1}, 48 * 1024 + 4, FillShared, &out), "");
  allowed_dynamic_shared = 100 * 1024;
  std::vector<int> result(3);
  EXPECT_EQ(Launch({1}, {1}, 100 * 1024, UseShared, result.data()), "");
  EXPECT_NE(Launch({1}, {1}, 101 * 1024, UseShared, result.data()), "");
  allowed_dynamic_shared = 0;
}

// Sums of c and 16 products of 1 and a bf16.
__global__ void Sums(uint32_t bf16, float c, float* out) {
  constexpr uint32_t kOne = 0x3f80, kPair = 0x10001;
  MatrixOperands operands;
  for (uint32_t& pair : operands.a) pair = kOne * kPair;
  for (uint32_t& pair : operands.b) pair = bf16 * kPair;
  for (float& element : operands.c) element = c;
  float sums[4];
  MultiplyMatrices(operands, sums, __FILE__, __LINE__);
  out[threadIdx.x] = sums[threadIdx.x % 4];
}

TEST_P(Simulator, CutsOffSumsOfProductsThatAFloatHolds) {
  const auto sums = [](uint32_t bf16, float c) {
    std::vector<float> out(32);
    EXPECT_EQ(Launch({1}, {32}, 0, Sums, bf16, c, out.data()), "");
    EXPECT_EQ(out, std::vector<float>(32, out[0]));
    return out[0];
  };
  EXPECT_EQ(sums(0x3f80, 0x1.8p-20f), 16.0f);  // rounded, it would be larger
  EXPECT_EQ(sums(0x7f00, 0), INFINITY);        // 16 times 2^127
  EXPECT_EQ(sums(0xff00, 0), -INFINITY);
}

// The order in which the threads run, block after block.
std::vector<int>* visited = nullptr;
__global__ void Visit() {
  for (int turn = 0; turn < 2; ++turn) {
    visited->push_back(static_cast<int>(blockIdx.x * 100 + threadIdx.x));
    __syncthreads();
  }
}

std::vector<int> Visits(Schedule schedule, uint64_t seed) {
  std::vector<int> order;
  // The threads race on it, on purpose; TSan's allocator would see it grow.
  order.reserve(2 * 2 * 70);
  visited = &order;
  SetSchedule(schedule, seed);
  EXPECT_EQ(Launch({2}, {70}, 0, Visit), "");
  return order;
}

TEST(Schedules, DifferAsTheirNamesSayAndRepeat) {
  const std::vector<int> up = Visits(Schedule::kAscending, 1);
  const std::vector<int> down = Visits(Schedule::kDescending, 1);
  ASSERT_EQ(up.size(), 280u);
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(up[i], i);
    EXPECT_EQ(up[140 + i], 100 + i);
    EXPECT_EQ(down[140 + i] / 100, 0);
  }
  EXPECT_EQ(down[0], 169);  // the last thread of the last block
  const std::vector<int> random = Visits(Schedule::kRandom, 1);
  EXPECT_EQ(random, Visits(Schedule::kRandom, 1));
  EXPECT_NE(random, Visits(Schedule::kRandom, 2));
  std::vector<int> sorted = random, expected = up;
  std::sort(sorted.begin(), sorted.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sorted, expected);
}

__global__ void HalfWait(int first) {
  if (static_cast<int>(threadIdx.x) >= first) __syncthreads();
}

TEST_P(Simulator, SaysWhoWaitsWhereAndGoesOnWithTheNextGrid) {
  const std::string message = Launch({1}, {64}, 0, HalfWait, 40);
  EXPECT_NE(message.find("block (0,0,0)"), std::string::npos) << message;
  EXPECT_NE(message.find("simulator_test.cc:"), std::string::npos) << message;
  EXPECT_NE(message.find("thread 40 (lane 8 of warp 1) waits"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("thread 0, among others, has ended"),
            std::string::npos)
      << message;
  EXPECT_EQ(Launch({1}, {64}, 0, HalfWait, 0), "");
}

}  // namespace
}  // namespace softmoe::simt
