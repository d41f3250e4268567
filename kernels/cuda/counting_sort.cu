// SPDX-License-Identifier: Apache-2.0
//
// Reads 8 bytes and writes 4 for each count.
#include "kernels/cuda/counting_sort.h"
#include "kernels/cuda/launch.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// The sum of `value` over this thread and those before it; all threads call it.
__device__ int32_t InclusiveSum(int32_t value) {
  SOFTMOE_SHARED(int32_t, sums, [2][kSortThreads]);
  const int me = threadIdx.x;
  int from = 0;
  sums[0][me] = value;
  __syncthreads();
  for (int step = 1; step < kSortThreads; step *= 2) {
    value = sums[from][me] + (me >= step ? sums[from][me - step] : 0);
    from = 1 - from;
    sums[from][me] = value;
    __syncthreads();
  }
  return value;
}

constexpr int kColumns = 32;
// A thread takes the blocks of its strip one after the other, and there are few
// threads: as many strips as one block can have.
constexpr int kStrips = 32;
static_assert(kStrips * kColumns <= 1024);

// A block per 32 bins, a thread per bin and strip of the blocks of items.
// Leaves the number of the bin's items in offsets[bin + 1].
__global__ void __launch_bounds__(kStrips* kColumns)
    ScanBlocksKernel(ScanCountsArgs a) {
  SOFTMOE_SHARED(int32_t, sums, [kStrips][kColumns]);
  const int strip = threadIdx.x / kColumns, column = threadIdx.x % kColumns;
  const int64_t bin = int64_t{blockIdx.x} * kColumns + column;
  const bool there = bin < a.bins;
  const int64_t per_strip = (a.blocks + kStrips - 1) / kStrips;
  const int64_t first = there ? strip * per_strip : a.blocks;
  const int64_t end =
      first + per_strip < a.blocks ? first + per_strip : a.blocks;
  int32_t items = 0;
  for (int64_t b = first; b < end; ++b) items += a.counts[b * a.bins + bin];
  sums[strip][column] = items;
  __syncthreads();
  int32_t before = 0;
  for (int s = 0; s < strip; ++s) before += sums[s][column];
  for (int64_t b = first; b < end; ++b) {
    const int32_t count = a.counts[b * a.bins + bin];
    a.counts[b * a.bins + bin] = before;
    before += count;
  }
  if (strip == kStrips - 1 && there) a.offsets[bin + 1] = before;
}

__global__ void __launch_bounds__(kSortThreads)
    ScanBinsKernel(ScanCountsArgs a) {
  const int64_t bin = threadIdx.x;
  const bool there = bin < a.bins;
  const int32_t end = InclusiveSum(there ? a.offsets[bin + 1] : 0);
  if (there) a.offsets[bin + 1] = end;
  if (bin == 0) a.offsets[0] = 0;
}

}  // namespace

void ScanCounts(const char* what, const ScanCountsArgs& args,
                cudaStream_t stream) {
  Launch(what, ScanBlocksKernel, Blocks(args.bins, kColumns),
         kStrips * kColumns, 0, stream, args);
  Launch(what, ScanBinsKernel, 1, kSortThreads, 0, stream, args);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
