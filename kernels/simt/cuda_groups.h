// SPDX-License-Identifier: Apache-2.0
//
// cuda_groups.h - the groups of CUDA threads (group.h), for nvcc and for the
// simulator.
#ifndef SOFTMOE_KERNELS_SIMT_CUDA_GROUPS_H_
#define SOFTMOE_KERNELS_SIMT_CUDA_GROUPS_H_

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

// What groups of kThreads CUDA threads along a row have in common.
template <int kThreads>
struct CudaLanes {
  using Scalar = float;
  using Real = float;

  __device__ __forceinline__ int Lane() const { return threadIdx.x % kThreads; }
  // T is float or Bf16; what is stored as Bf16 is rounded once.
  template <typename T>
  __device__ __forceinline__ float Load(const T* row, Columns at) const {
    return FloatOf(row[at.begin]);
  }
  __device__ __forceinline__ float LoadOr(const float* row, Columns at,
                                          float /*fill*/) const {
    return row[at.begin];
  }
  template <typename T>
  __device__ __forceinline__ void Store(T* row, Columns at, float value) const {
    StoreFloat(value, row + at.begin);
  }
  template <typename T>
  __device__ __forceinline__ void StoreOne(T* row, int64_t column,
                                           float value) const {
    StoreFloat(value, row + column);
  }
  template <typename Body>
  __device__ __forceinline__ void ForEachColumn(int64_t size,
                                                const Body& body) const {
    for (int64_t c = Lane(); c < size; c += kThreads) {
      body(Columns{c, 1});
    }
  }
  __device__ __forceinline__ bool IsFirst() const { return Lane() == 0; }

 protected:
  // The sum, and the largest, over the columns of this lane.
  template <typename Body>
  __device__ __forceinline__ float LaneSum(int64_t size,
                                           const Body& body) const {
    float sum = 0;
    ForEachColumn(size, [&](Columns at) { sum += body(at); });
    return sum;
  }
  template <typename Body>
  __device__ __forceinline__ float LaneMax(int64_t size,
                                           const Body& body) const {
    float largest = -__builtin_inff();
    ForEachColumn(size, [&](Columns at) { largest = Max(largest, body(at)); });
    return largest;
  }
};

// One row per warp of 32 threads, all of them active.
struct CudaWarp : CudaLanes<32> {
  template <typename Body>
  __device__ __forceinline__ float RowSum(int64_t size,
                                          const Body& body) const {
    return WarpSum(LaneSum(size, body));
  }
  template <typename Body>
  __device__ __forceinline__ float RowMax(int64_t size,
                                          const Body& body) const {
    return WarpMax(LaneMax(size, body));
  }
  __device__ __forceinline__ void Sync() const { __syncwarp(); }
};

// One row per block of kThreads threads, for rows of thousands of columns.
template <int kThreads>
struct CudaBlock : CudaLanes<kThreads> {
  static constexpr int kWarps = kThreads / 32;

  // The warps' sums are added in the order of the warps.
  template <typename Body>
  __device__ __forceinline__ float RowSum(int64_t size,
                                          const Body& body) const {
    SOFTMOE_SHARED(float, of_warp, [kWarps]);
    const float sum = WarpSum(this->LaneSum(size, body));
    Share(sum, of_warp);
    float total = of_warp[0];
    for (int i = 1; i < kWarps; ++i) total += of_warp[i];
    return total;
  }
  template <typename Body>
  __device__ __forceinline__ float RowMax(int64_t size,
                                          const Body& body) const {
    SOFTMOE_SHARED(float, of_warp, [kWarps]);
    const float largest = WarpMax(this->LaneMax(size, body));
    Share(largest, of_warp);
    float total = of_warp[0];
    for (int i = 1; i < kWarps; ++i) total = Max(total, of_warp[i]);
    return total;
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
