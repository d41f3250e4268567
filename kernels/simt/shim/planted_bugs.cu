// SPDX-License-Identifier: Apache-2.0
//
// Every kernel but the controls is wrong on purpose. `in` and `out` have 256
// elements per block.
#include <cstdint>
#include <cstdio>
#include <memory>

#include "kernels/simt/shared_memory.h"
#include "kernels/simt/shim/planted_bugs.h"
#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"
#include "kernels/simt/shim/warp_matrices.h"

// The compilers see some of the mistakes, too.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace softmoe::simt {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kAllLanes = 0xffffffffu;

// ---- Correct kernels

__global__ void ReverseControl(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = s[255 - t];
}

__global__ void SyncWarpControl(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncwarp();
  out[t] = s[t ^ 1];
}

__global__ void HalfMasksControl(const int* in, int* out) {
  const int t = threadIdx.x;
  int v = in[t];
  if (t % 32 < 16) {
    v += __shfl_xor_sync(0x0000ffffu, v, 1);
  } else {
    v += __shfl_xor_sync(0xffff0000u, v, 2);
  }
  out[t] = v;
}

__global__ void AtomicControl(const int* in, int* out) {
  atomicAdd(out, in[threadIdx.x]);
}

// Blocks that use the same shared memory and barriers, each its part of `out`.
__global__ void BlocksControl(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  SOFTMOE_DYNAMIC_SHARED(int, d);
  const int t = threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    s[t] = in[blockIdx.x * kThreads + t];
    d[t] = 1;
    __syncthreads();
    out[blockIdx.x * kThreads + t] = s[255 - t] * d[t ^ 1];
    __syncthreads();
  }
}

__global__ void BlocksAtomicControl(const int* in, int* out) {
  atomicAdd(out, in[blockIdx.x * kThreads + threadIdx.x]);
}

// ---- Missing or misplaced synchronisation

__global__ void ReadAfterWrite(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  s[t] = in[t];  // no __syncthreads()
  out[t] = s[255 - t];
}

__global__ void WriteAfterRead(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    s[t] = in[t] + round;
    __syncthreads();
    sum += s[(t + 1) % kThreads];  // no second __syncthreads()
  }
  out[t] = sum;
}

__global__ void WriteAfterReadOfTheSame(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    s[t] = in[t];  // the same value again: no result shows it
    __syncthreads();
    sum += s[(t + 1) % kThreads];
  }
  out[t] = sum;
}

__global__ void NoSyncWarp(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  s[t] = in[t];
  out[t] = s[t ^ 1];
}

__global__ void ShuffleAsFence(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  s[t] = in[t];
  const int other = __shfl_xor_sync(kAllLanes, t, 1);  // orders no memory
  out[t] = s[other];
}

__global__ void DivergentBarrier(const int* in, int* out) {
  const int t = threadIdx.x;
  if (t < 200) __syncthreads();
  out[t] = in[t];
}

__global__ void BarrierAfterReturn(const int* in, int* out) {
  const int t = threadIdx.x;
  out[t] = in[t];
  if (t >= 200) return;
  __syncthreads();
}

__global__ void TwoBarriersForOne(const int* in, int* out) {
  const int t = threadIdx.x;
  if (t < 128) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[t] = in[t];
}

// ---- Masks

__global__ void MaskWithoutCaller(const int* in, int* out) {
  const int t = threadIdx.x;
  out[t] = __shfl_xor_sync(0x0000ffffu, in[t], 1);
}

__global__ void FullMaskInBranch(const int* in, int* out) {
  const int t = threadIdx.x;
  int v = in[t];
  if (t % 32 < 16) v += __shfl_xor_sync(kAllLanes, v, 1);
  out[t] = v;
}

__global__ void SourceNotInMask(const int* in, int* out) {
  const int t = threadIdx.x;
  int v = in[t];
  if (t % 32 < 16) v = __shfl_sync(0x0000ffffu, v, 20);
  out[t] = v;
}

// ---- Bounds

__global__ void BeyondShared(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = s[t + 1];
}

__global__ void BeyondDynamicShared(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);  // kThreads of them
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  out[t] = s[t + 1];
}

__global__ void BeyondGlobal(const int* in, int* out) {
  const int t = threadIdx.x;
  out[t] = in[t + 1];
}

__global__ void BeyondLocal(const int* in, int* out) {
  const int t = threadIdx.x;
  volatile int v[4];
  for (int i = 0; i <= 4; ++i) v[i] = in[(t + i) % kThreads];
  out[t] = v[t % 4];
}

// ---- Values that were never written

__global__ void UninitializedLane(const int* in, int* out) {
  const int t = threadIdx.x;
  volatile int v;
  if (t % 32 < 20) v = in[t];
  out[t] = __shfl_xor_sync(kAllLanes, static_cast<int>(v), 31);
}

__global__ void UninitializedShared(const int* in, int* out) {
  SOFTMOE_SHARED(int, s, [kThreads]);
  const int t = threadIdx.x;
  if (t < 255) s[t] = in[t];
  __syncthreads();
  out[t] = s[255 - t] > 5 ? 1 : 0;
}

// ---- Races in global memory

__global__ void TwoWriters(const int* in, int* out) {
  const int t = threadIdx.x;
  out[t / 2] = in[t];
}

__global__ void NotAtomic(const int* in, int* out) {
  out[0] += in[threadIdx.x];
}

// ---- Races between blocks

__global__ void BlocksWriteHalo(const int* in, int* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = in[i];
  if (threadIdx.x == 0 && i > 0) out[i - 1] = in[i - 1];  // a neighbour's
}

// A barrier orders the threads of its own block only.
__global__ void BlocksWriteHaloBeforeBarrier(const int* in, int* out) {
  BlocksWriteHalo(in, out);
  __syncthreads();
}

__global__ void BlocksNotAtomic(const int* in, int* out) {
  if (threadIdx.x == 0) out[0] += in[blockIdx.x * kThreads];
}

// ---- Copies that have not landed, and the warp's matrices

// Copies `in` to `to`, 16 bytes for each of the first 64 threads.
void BeginToCopy(const int* in, int* to, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  const int t = threadIdx.x;
  if (t < kThreads / 4) BeginCopy(in + 4 * t, true, to + 4 * t, file, line);
  CommitCopies();
}

__global__ void CopyControl(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  BeginToCopy(in, s);
  WaitForCopies(0);
  __syncthreads();
  out[threadIdx.x] = s[255 - threadIdx.x];
}

// Each thread reads what it has copied itself.
__global__ void NotWaitedForCopy(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  const int t = threadIdx.x;
  BeginToCopy(in, s);
  WaitForCopies(1);
  if (t < kThreads / 4) {
    for (int i = 0; i < 4; ++i) out[4 * t + i] = s[4 * t + i];
  }
  WaitForCopies(0);
}

__global__ void NotCommittedCopy(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  const int t = threadIdx.x;
  if (t < kThreads / 4) {
    BeginCopy(in + 4 * t, true, s + 4 * t, __FILE__, __LINE__);
  }
  WaitForCopies(0);
  if (t < kThreads / 4) {
    for (int i = 0; i < 4; ++i) out[4 * t + i] = s[4 * t + i];
  }
  CommitCopies();
  WaitForCopies(0);
}

__global__ void CopyWithoutBarrier(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  BeginToCopy(in, s);
  WaitForCopies(0);
  out[threadIdx.x] = s[255 - threadIdx.x];
}

__global__ void CopyOverWhatIsRead(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  BeginToCopy(in, s);
  WaitForCopies(0);
  __syncthreads();
  out[threadIdx.x] = s[255 - threadIdx.x];
  BeginToCopy(in, s);  // no __syncthreads()
  WaitForCopies(0);
}

__global__ void CopyAtTheEnd(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  out[threadIdx.x] = in[threadIdx.x];
  BeginToCopy(in, s);
}

__global__ void CopyToOddPlace(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) BeginCopy(in, true, s + 1, __FILE__, __LINE__);
}

__global__ void MatricesInBranch(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  uint32_t pairs[4] = {};
  if (t % 32 < 16) {
    LoadMatrices(s + 4 * (t % 32), false, pairs, __FILE__, __LINE__);
  }
  out[t] = static_cast<int>(pairs[0]);
}

__global__ void MatricesWithoutBarrier(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  const int t = threadIdx.x;
  s[t] = in[t];  // no __syncwarp()
  uint32_t pairs[4];
  LoadMatrices(s + t / 32 * 32 + 4 * (t % 8), true, pairs, __FILE__, __LINE__);
  out[t] = static_cast<int>(pairs[0]);
}

__global__ void MatricesBeyondShared(const int* in, int* out) {
  SOFTMOE_DYNAMIC_SHARED(int, s);
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  uint32_t pairs[4];
  LoadMatrices(s + 4 * t, false, pairs, __FILE__, __LINE__);
  out[t] = static_cast<int>(pairs[0]);
}

// ---- How they are run

using Kernel = void (*)(const int*, int*);

// Null: any result is right.
using Expected = int (*)(const int* in, int i);

int NumberAt(int i) { return i * 7 + 3; }

template <Kernel kKernel, Expected kExpected, int kBlocks = 1,
          int kDynamicShared = kThreads * sizeof(int)>
Outcome Run() {
  constexpr int kSize = kBlocks * kThreads;
  const std::unique_ptr<int[]> in(new int[kSize]), out(new int[kSize]);
  for (int i = 0; i < kSize; ++i) {
    in[i] = NumberAt(i);
    out[i] = 0;
  }
  Grid grid;
  grid.blocks = {kBlocks, 1, 1};
  grid.threads = {kThreads, 1, 1};
  grid.dynamic_shared = kDynamicShared;
  if (const char* wrong = RunKernel(grid, kKernel, in.get(), out.get())) {
    fprintf(stderr, "simulator: %s\n", wrong);
    return Outcome::kRefused;
  }
  RequireInitialized(out.get(), kSize * sizeof(int));
  for (int i = 0; i < kSize; ++i) {
    if (kExpected != nullptr && out[i] != kExpected(in.get(), i)) {
      fprintf(stderr, "out[%d] is %d, not %d\n", i, out[i],
              kExpected(in.get(), i));
      return Outcome::kWrong;
    }
  }
  return Outcome::kClean;
}

int Same(const int* in, int i) { return in[i]; }
int Neighbour(const int* in, int i) { return in[i ^ 1]; }
int Reversed(const int* in, int i) {
  return in[i / kThreads * kThreads + 255 - i % kThreads];
}
int TwiceNext(const int* in, int i) { return 2 * in[(i + 1) % kThreads]; }
int TwiceNextAndOne(const int* in, int i) { return TwiceNext(in, i) + 1; }
int HalvesExchanged(const int* in, int i) {
  return in[i] + in[i % 32 < 16 ? i ^ 1 : i ^ 2];
}
template <int kBlocks>
int Total(const int* in, int i) {
  int sum = 0;
  for (int j = 0; j < kBlocks * kThreads; ++j) sum += in[j];
  return i == 0 ? sum : 0;
}

constexpr Must kClean = Must::kStayClean, kWrong = Must::kBeWrong,
               kRefuse = Must::kRefuse, kReport = Must::kReport,
               kAny = Must::kAnything;

// clang-format off
constexpr PlantedBug kPlantedBugs[] = {
    //                                    plain    ASan+UBSan TSan   MSan
    {"reverse (correct)",                {kClean,  kClean,  kClean,  kClean},  Run<ReverseControl, Reversed>},
    {"syncwarp (correct)",               {kClean,  kClean,  kClean,  kClean},  Run<SyncWarpControl, Neighbour>},
    {"half masks (correct)",             {kClean,  kClean,  kClean,  kClean},  Run<HalfMasksControl, HalvesExchanged>},
    {"atomic (correct)",                 {kClean,  kClean,  kClean,  kClean},  Run<AtomicControl, Total<1>>},
    {"blocks (correct)",                 {kClean,  kClean,  kClean,  kClean},  Run<BlocksControl, Reversed, 9>},
    {"blocks, atomic (correct)",         {kClean,  kClean,  kClean,  kClean},  Run<BlocksAtomicControl, Total<9>, 9>},
    {"copy (correct)",                   {kClean,  kClean,  kClean,  kClean},  Run<CopyControl, Reversed>},
    {"read after write",                 {kWrong,  kWrong,  kReport, kReport}, Run<ReadAfterWrite, Reversed>},
    {"write after read",                 {kWrong,  kWrong,  kReport, kWrong},  Run<WriteAfterRead, TwiceNextAndOne>},
    {"write after read, same value",     {kAny,    kAny,    kReport, kAny},    Run<WriteAfterReadOfTheSame, TwiceNext>},
    {"no syncwarp",                      {kWrong,  kWrong,  kReport, kReport}, Run<NoSyncWarp, Neighbour>},
    {"shuffle as fence",                 {kAny,    kAny,    kReport, kAny},    Run<ShuffleAsFence, Neighbour>},
    {"divergent barrier",                {kRefuse, kRefuse, kRefuse, kRefuse}, Run<DivergentBarrier, Same>},
    {"barrier after return",             {kRefuse, kRefuse, kRefuse, kRefuse}, Run<BarrierAfterReturn, Same>},
    {"two barriers for one",             {kRefuse, kRefuse, kRefuse, kRefuse}, Run<TwoBarriersForOne, Same>},
    {"mask without caller",              {kRefuse, kRefuse, kRefuse, kRefuse}, Run<MaskWithoutCaller, nullptr>},
    {"full mask in branch",              {kRefuse, kRefuse, kRefuse, kRefuse}, Run<FullMaskInBranch, nullptr>},
    {"source not in mask",               {kRefuse, kRefuse, kRefuse, kRefuse}, Run<SourceNotInMask, nullptr>},
    {"beyond shared memory",             {kAny,    kReport, kAny,    kReport}, Run<BeyondShared, nullptr>},
    {"beyond dynamic shared memory",     {kAny,    kReport, kAny,    kReport}, Run<BeyondDynamicShared, nullptr>},
    {"beyond global memory",             {kAny,    kReport, kAny,    kAny},    Run<BeyondGlobal, nullptr>},
    {"beyond a local array",             {kAny,    kReport, kAny,    kAny},    Run<BeyondLocal, nullptr>},
    {"uninitialized lane in a shuffle",  {kAny,    kAny,    kAny,    kReport}, Run<UninitializedLane, nullptr>},
    {"uninitialized shared memory",      {kAny,    kAny,    kAny,    kReport}, Run<UninitializedShared, nullptr>},
    {"two writers",                      {kAny,    kAny,    kReport, kAny},    Run<TwoWriters, nullptr>},
    {"not atomic",                       {kAny,    kAny,    kReport, kAny},    Run<NotAtomic, nullptr>},
    {"blocks write a neighbour's",       {kAny,    kAny,    kReport, kAny},    Run<BlocksWriteHalo, Same, 9>},
    {"neighbour's, then a barrier",      {kAny,    kAny,    kReport, kAny},    Run<BlocksWriteHaloBeforeBarrier, Same, 4>},
    {"blocks, not atomic",               {kAny,    kAny,    kReport, kAny},    Run<BlocksNotAtomic, nullptr, 9>},
    {"copy that is not waited for",      {kWrong,  kWrong,  kWrong,  kReport}, Run<NotWaitedForCopy, Same>},
    {"copy that is not committed",       {kWrong,  kWrong,  kWrong,  kReport}, Run<NotCommittedCopy, Same>},
    {"copy without a barrier",           {kWrong,  kWrong,  kReport, kReport}, Run<CopyWithoutBarrier, Reversed>},
    {"copy over what is read",           {kAny,    kAny,    kReport, kAny},    Run<CopyOverWhatIsRead, Reversed>},
    {"copy that is left at the end",     {kRefuse, kRefuse, kRefuse, kRefuse}, Run<CopyAtTheEnd, Same>},
    {"copy to an odd place",             {kRefuse, kRefuse, kRefuse, kRefuse}, Run<CopyToOddPlace, nullptr>},
    {"matrices in a branch",             {kRefuse, kRefuse, kRefuse, kRefuse}, Run<MatricesInBranch, nullptr>},
    {"matrices without a barrier",       {kAny,    kAny,    kReport, kAny},    Run<MatricesWithoutBarrier, nullptr>},
    {"matrices beyond shared memory",    {kRefuse, kRefuse, kRefuse, kRefuse}, Run<MatricesBeyondShared, nullptr>},
    {"too much shared memory",           {kRefuse, kRefuse, kRefuse, kRefuse}, Run<ReverseControl, Reversed, 1, 48 * 1024>},
};
// clang-format on

}  // namespace

std::span<const PlantedBug> PlantedBugs() { return kPlantedBugs; }
const char* PlantedBugsSource() { return "planted_bugs.cu:"; }

}  // namespace softmoe::simt
