// SPDX-License-Identifier: Apache-2.0
//
// The groups of CUDA threads along a row, in the simulator: sums and maxima of
// integers, which are exact in any order, for rows shorter and longer than the
// group, several in one kernel, whose lanes take one column at a time or eight;
// that the columns given to the lanes cover a row once; and that what a lane
// takes at a time are these columns, in this order, of floats and of bf16.
#include <cstdio>
#include <vector>

#include "kernels/simt/device/shim_test_support.h"
#include "kernels/simt/group.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 96;

template <int kGroupsPerBlock>
__device__ int64_t GroupIndex() {
  return blockIdx.x * kGroupsPerBlock +
         threadIdx.x / (kThreads / kGroupsPerBlock);
}

// Each group goes through all rows; sums and maxima [groups, num_rows].
template <typename Group, int kGroupsPerBlock>
__global__ void ReduceRows(int64_t num_rows, int64_t size, const float* x,
                           float* sums, float* maxima, float* seen_by_last) {
  const Group group;
  const int64_t me = GroupIndex<kGroupsPerBlock>();
  // One sum directly after the other: what they share must not mix.
  for (int64_t row = 0; row < num_rows; ++row) {
    const float* own = x + row * size;
    const float sum =
        group.RowSum(size, [&](Columns at) { return group.Load(own, at); });
    const int64_t at = me * num_rows + row;
    if (group.IsFirst()) sums[at] = sum;
    // Every lane has the sum.
    if (group.Lane() == kThreads / kGroupsPerBlock - 1) seen_by_last[at] = sum;
  }
  for (int64_t row = 0; row < num_rows; ++row) {
    const float* own = x + row * size;
    const float largest = group.RowMax(
        size, [&](Columns at) { return group.LoadOr(own, at, 0.0f); });
    if (group.IsFirst()) maxima[me * num_rows + row] = largest;
  }
}

// Adds one to each column that a call stands for, in each of the three ways to
// go along a row; counts [groups, size].
constexpr float kWays = 3;
template <typename Group, int kGroupsPerBlock>
__global__ void CountColumns(int64_t size, float* counts) {
  const Group group;
  float* own = counts + GroupIndex<kGroupsPerBlock>() * size;
  const auto count = [&](Columns at) {
    for (int i = 0; i < at.count; ++i) own[at.begin + i] += 1;
    return typename Group::Real(0.0f);
  };
  group.ForEachColumn(size, count);
  group.RowSum(size, count);
  group.RowMax(size, count);
}

template <typename Group, int kGroupsPerBlock>
void CheckColumns(const char* what, int64_t size) {
  constexpr int64_t kBlocks = 2;
  constexpr int64_t kGroups = kBlocks * kGroupsPerBlock;
  CheckSchedules(what, [&](DeviceRun& run) {
    float* device_counts = run.InOut(std::vector<float>(kGroups * size));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(kBlocks);
    config.blockDim = dim3(kThreads);
    config.stream = run.stream();
    Check(cudaLaunchKernelEx(&config, CountColumns<Group, kGroupsPerBlock>,
                             size, device_counts));
    const auto counts = run.Read(device_counts, kGroups * size);
    for (int64_t i = 0; i < kGroups * size; ++i) {
      if (counts[i] == kWays) continue;
      Fail("%s, %ld columns: column %ld of group %ld counts %g", what,
           static_cast<long>(size), static_cast<long>(i % size),
           static_cast<long>(i / size), counts[i]);
    }
  });
}

template <typename Group, int kGroupsPerBlock>
void CheckGroup(const char* what, int64_t num_rows, int64_t size) {
  constexpr int64_t kBlocks = 2;
  constexpr int64_t kGroups = kBlocks * kGroupsPerBlock;
  Draws draws(3);
  std::vector<float> x(static_cast<size_t>(num_rows * size));
  for (float& value : x) {
    value = static_cast<float>(draws.Integer(-1900, 99));
  }
  CheckSchedules(what, [&](DeviceRun& run) {
    float* device_sums = run.Out<float>(kGroups * num_rows);
    float* device_maxima = run.Out<float>(kGroups * num_rows);
    float* device_seen = run.Out<float>(kGroups * num_rows);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(kBlocks);
    config.blockDim = dim3(kThreads);
    config.stream = run.stream();
    Check(cudaLaunchKernelEx(&config, ReduceRows<Group, kGroupsPerBlock>,
                             num_rows, size, run.In(x), device_sums,
                             device_maxima, device_seen));
    const auto sums = run.Read(device_sums, kGroups * num_rows);
    const auto maxima = run.Read(device_maxima, kGroups * num_rows);
    const auto seen_by_last = run.Read(device_seen, kGroups * num_rows);
    for (int64_t row = 0; row < num_rows; ++row) {
      float sum = 0, largest = -__builtin_inff();
      for (int64_t c = 0; c < size; ++c) {
        sum += x[row * size + c];
        largest = Max(largest, x[row * size + c]);
      }
      for (int64_t g = 0; g < kGroups; ++g) {
        const int64_t at = g * num_rows + row;
        if (sums[at] == sum && maxima[at] == largest &&
            seen_by_last[at] == sum) {
          continue;
        }
        Fail("%s, %ld columns, row %ld, group %ld: wrong", what,
             static_cast<long>(size), static_cast<long>(row),
             static_cast<long>(g));
      }
    }
  });
}

// to = from, eight elements a thread.
template <typename From, typename To>
__global__ void CopyPacks(const From* from, To* to) {
  const int64_t i = 8 * static_cast<int64_t>(threadIdx.x);
  StoreReal(LoadReal<8>(from + i), to + i);
}

template <typename From, typename To>
void CheckPacks(const char* what) {
  constexpr int64_t kPacks = 3;
  const auto from = RandomNumbers<From>(8 * kPacks, 1);
  CheckSchedules(what, [&](DeviceRun& run) {
    To* to = run.Out<To>(8 * kPacks);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(kPacks);
    config.stream = run.stream();
    Check(cudaLaunchKernelEx(&config, CopyPacks<From, To>, run.In(from), to));
    const auto got = run.Read(to, 8 * kPacks);
    for (size_t i = 0; i < got.size(); ++i) {
      if (FloatOf(got[i]) == FloatOf(from[i])) continue;
      Fail("%s: element %zu is %g, not %g", what, i, FloatOf(got[i]),
           FloatOf(from[i]));
    }
  });
}

void CheckAll() {
  CheckPacks<float, float>("float to float");
  CheckPacks<float, Bf16>("float to bf16");
  CheckPacks<Bf16, float>("bf16 to float");
  CheckPacks<Bf16, Bf16>("bf16 to bf16");
  for (const int64_t size : {0, 1, 31, 96, 250}) {
    CheckGroup<CudaWarp, kThreads / 32>("CudaWarp", 4, size);
    CheckGroup<CudaBlock<kThreads>, 1>("CudaBlock", 4, size);
  }
  // No pack, one, as many as there are threads, and more.
  for (const int64_t size : {0, 8, 256, 768, 1000}) {
    CheckGroup<CudaWarpOf<8>, kThreads / 32>("CudaWarpOf<8>", 4, size);
    CheckGroup<CudaBlock<kThreads, 8>, 1>("CudaBlock<8>", 4, size);
  }
  for (const int64_t size : {1, 31, 96, 250}) {
    CheckColumns<CudaWarp, kThreads / 32>("CudaWarp", size);
    CheckColumns<CudaBlock<kThreads>, 1>("CudaBlock", size);
    CheckColumns<CudaThread, kThreads>("CudaThread", size);
    CheckColumns<CudaWarpOf<8>, kThreads / 32>("CudaWarpOf<8>", size);
    CheckColumns<CudaBlock<kThreads, 8>, 1>("CudaBlock<8>", size);
  }
}

}  // namespace
}  // namespace softmoe::kernels::SOFTMOE_ISA

int main() {
  softmoe::kernels::SOFTMOE_ISA::CheckAll();
  return softmoe::kernels::Summary();
}
