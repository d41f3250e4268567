// SPDX-License-Identifier: Apache-2.0
//
// cuda_groups.h - the groups of CUDA threads (group.h), for nvcc and for the
// simulator.
#ifndef SOFTMOE_KERNELS_SIMT_CUDA_GROUPS_H_
#define SOFTMOE_KERNELS_SIMT_CUDA_GROUPS_H_

#include "kernels/simt/float_pack.h"
#include "kernels/simt/scalar.h"
#include "kernels/simt/serial_group.h"
#include "kernels/simt/shared_memory.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// One row per CUDA thread.
struct CudaThread : SerialLane<float> {};

// The sum and the maximum of one value per lane of a warp whose lanes are all
// active: a butterfly, so every lane gets the same bits.
__device__ __forceinline__ float WarpSum(float value) {
  for (int mask = 16; mask > 0; mask /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, mask);
  }
  return value;
}
__device__ __forceinline__ float WarpMax(float value) {
  for (int mask = 16; mask > 0; mask /= 2) {
    value = Max(value, __shfl_xor_sync(0xffffffffu, value, mask));
  }
  return value;
}

// What groups of kThreads CUDA threads along a row have in common. A lane takes
// kWidth columns at a time; where these are more than one, rows begin at a
// multiple of 16 bytes and have a whole number of such columns (a wide kernel:
// cuda/row_width.h).
template <int kThreads, int kWidth>
struct CudaLanes {
  using Scalar = float;
  using Real = RealOf<kWidth>;
  static constexpr bool kRowIsCached = false;

  __device__ __forceinline__ int Lane() const { return threadIdx.x % kThreads; }
  // T is float or Bf16; what is stored as Bf16 is rounded once.
  template <typename T>
  __device__ __forceinline__ Real Load(const T* row, Columns at) const {
    return LoadReal<kWidth>(row + at.begin);
  }
  __device__ __forceinline__ Real LoadOr(const float* row, Columns at,
                                         float fill) const {
    Real value = Load(row, at);
    if constexpr (kWidth > 1) {
      SOFTMOE_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        value[i] = Select(i < at.count, value[i], fill);
      }
    }
    return value;
  }
  template <typename T>
  __device__ __forceinline__ void Store(T* row, Columns at,
                                        const Real& value) const {
    StoreReal(value, row + at.begin);
  }
  template <typename T>
  __device__ __forceinline__ void StoreOne(T* row, int64_t column,
                                           float value) const {
    StoreFloat(value, row + column);
  }
  // If `size` is not a multiple of kWidth, only LoadOr may be used.
  template <typename Body>
  __device__ __forceinline__ void ForEachColumn(int64_t size,
                                                const Body& body) const {
    for (int64_t c = int64_t{kWidth} * Lane(); c < size;
         c += kThreads * kWidth) {
      const int64_t left = size - c;
      body(Columns{c, left < kWidth ? static_cast<int>(left) : kWidth});
    }
  }
  __device__ __forceinline__ bool IsFirst() const { return Lane() == 0; }

 protected:
  // The sum, and the largest, over the columns of this lane: those of its packs
  // one after the other, element by element, and then those of one pack.
  template <typename Body>
  __device__ __forceinline__ float LaneSum(int64_t size,
                                           const Body& body) const {
    Real sum(0.0f);
    ForEachColumn(size, [&](Columns at) { sum += body(at); });
    return SumOf(sum);
  }
  template <typename Body>
  __device__ __forceinline__ float LaneMax(int64_t size,
                                           const Body& body) const {
    Real largest(-__builtin_inff());
    ForEachColumn(size, [&](Columns at) { largest = Max(largest, body(at)); });
    return MaxOf(largest);
  }
};

// One row per warp of 32 threads, all of them active.
template <int kWidth>
struct CudaWarpOf : CudaLanes<32, kWidth> {
  template <typename Body>
  __device__ __forceinline__ float RowSum(int64_t size,
                                          const Body& body) const {
    return GroupSum(this->LaneSum(size, body));
  }
  template <typename Body>
  __device__ __forceinline__ float RowMax(int64_t size,
                                          const Body& body) const {
    return GroupMax(this->LaneMax(size, body));
  }
  // Of one value per lane.
  __device__ __forceinline__ float GroupSum(float value) const {
    return WarpSum(value);
  }
  __device__ __forceinline__ float GroupMax(float value) const {
    return WarpMax(value);
  }
  __device__ __forceinline__ void Sync() const { __syncwarp(); }
};
using CudaWarp = CudaWarpOf<1>;

// One row per block of kThreads threads, for rows of thousands of columns.
template <int kThreads, int kWidth = 1>
struct CudaBlock : CudaLanes<kThreads, kWidth> {
  static constexpr int kWarps = kThreads / 32;

  template <typename Body>
  __device__ __forceinline__ float RowSum(int64_t size,
                                          const Body& body) const {
    return GroupSum(this->LaneSum(size, body));
  }
  template <typename Body>
  __device__ __forceinline__ float RowMax(int64_t size,
                                          const Body& body) const {
    return GroupMax(this->LaneMax(size, body));
  }
  // Of one value per lane. The warps' sums are added in the order of the warps.
  __device__ __forceinline__ float GroupSum(float value) const {
    SOFTMOE_SHARED(float, of_warp, [kWarps]);
    Share(WarpSum(value), of_warp);
    float total = of_warp[0];
    for (int i = 1; i < kWarps; ++i) total += of_warp[i];
    return total;
  }
  __device__ __forceinline__ float GroupMax(float value) const {
    SOFTMOE_SHARED(float, of_warp, [kWarps]);
    Share(WarpMax(value), of_warp);
    float largest = of_warp[0];
    for (int i = 1; i < kWarps; ++i) largest = Max(largest, of_warp[i]);
    return largest;
  }
  __device__ __forceinline__ void Sync() const { __syncthreads(); }

 private:
  // of_warp[w] = the value of warp w, for all to read.
  __device__ __forceinline__ void Share(float value, float* of_warp) const {
    // Some threads may still read what was shared last.
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
  }
};

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_CUDA_GROUPS_H_
