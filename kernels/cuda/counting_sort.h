// SPDX-License-Identifier: Apache-2.0
//
// counting_sort.h - what stable counting sorts on a device share. Items, each
// with a bin, lie in fixed blocks:
//
//   count   a CUDA block per block of items: counts[block, bin] = its items
//   scan    ScanCounts: where each block's items of each bin begin
//   place   as count, but each item goes to the next place of its bin
//
// A thread per bin walks the items of its block in order: stable, and without
// atomics. All threads of a CUDA block read one bin of shared memory at a time.
#ifndef SOFTMOE_KERNELS_CUDA_COUNTING_SORT_H_
#define SOFTMOE_KERNELS_CUDA_COUNTING_SORT_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/simd/inline.h"
#include "kernels/simt/shared_memory.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline constexpr int kSortThreads = 256;  // of a CUDA block: a thread per bin
inline constexpr int kSortChunk = 2048;   // bins in shared memory at a time

// Calls body(item) for each item of [begin, end) whose bin is this thread's, in
// ascending order. All threads of a CUDA block call it. bin_of(item) is below
// num_bins <= kSortThreads; negative: in no bin.
template <typename BinOf, typename Body>
__device__ void ForEachItemOfBin(int64_t begin, int64_t end, int64_t num_bins,
                                 const BinOf& bin_of, const Body& body) {
  SOFTMOE_SHARED(int32_t, bins, [kSortChunk]);
  const int bin = threadIdx.x;
  for (int64_t first = begin; first < end; first += kSortChunk) {
    const int items =
        end - first < kSortChunk ? static_cast<int>(end - first) : kSortChunk;
    __syncthreads();  // the last chunk has been read
    for (int i = bin; i < items; i += kSortThreads) bins[i] = bin_of(first + i);
    __syncthreads();
    if (bin >= num_bins) continue;  // has no items, but loads
    for (int i = 0; i < items; ++i) {
      if (bins[i] == bin) body(first + i);
    }
  }
}

// Turns counts into places, and gives where each bin begins: the items of
// `block` and `bin` go to offsets[bin] + counts[block, bin] and after.
struct ScanCountsArgs {
  int64_t blocks, bins;  // bins <= kSortThreads
  int32_t* counts;       // [blocks, bins]
  int32_t* offsets;      // [bins + 1], =
};
void ScanCounts(const char* what, const ScanCountsArgs& args,
                cudaStream_t stream);

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_CUDA_COUNTING_SORT_H_
