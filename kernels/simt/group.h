// SPDX-License-Identifier: Apache-2.0
//
// group.h - execution groups: who computes a row, and how (simt.md).
//
// A body - the mathematics of one row - is a template on a group and is written
// once. Two kinds of groups:
//
//   along the row (long rows: RMSNorm)      Real holds some columns of one row
//     SerialLane<R>  one column at a time, R = float or double
//     SimdLane       Floats::kWidth columns at a time (CPU)
//     CudaWarp       column c belongs to lane c % 32
//     CudaBlock<n>   column c belongs to thread c % n
//   across rows (short rows: the router)    Real holds one column of some rows
//     SerialLane<R>  one row
//     SimdRows       Floats::kWidth rows (CPU)
//     CudaThread     one row per CUDA thread
//
// A body never branches on data (it selects), so every row of a SimdRows and
// every thread of a warp does the same work.
#ifndef SOFTMOE_KERNELS_SIMT_GROUP_H_
#define SOFTMOE_KERNELS_SIMT_GROUP_H_

#include "kernels/simt/scalar.h"
#ifdef SOFTMOE_CUDA
#include "kernels/simt/shared_memory.h"
#else
#include "kernels/simd.h"
#endif

namespace softmoe::kernels::SOFTMOE_ISA {

// Where a group stands in a row: `count` columns from `begin` on.
struct Columns {
  int64_t begin;
  int count;
};

// One thread, one element at a time.
template <typename R>
struct SerialLane {
  using Scalar = R;        // of memory
  using Real = R;          // what arithmetic works on
  using Condition = bool;  // a comparison of Reals
  using Set = int32_t;     // up to 32 members, for each row of Real

  SOFTMOE_INLINE R Load(const R* row, Columns at) const {
    return row[at.begin];
  }
  SOFTMOE_INLINE void Store(R* row, Columns at, R value) const {
    row[at.begin] = value;
  }
  template <typename Body>
  SOFTMOE_INLINE void ForEachColumn(int64_t size, const Body& body) const {
    for (int64_t c = 0; c < size; ++c) body(Columns{c, 1});
  }
  // Sum over the row of body(columns), known to the whole group.
  template <typename Body>
  SOFTMOE_INLINE R RowSum(int64_t size, const Body& body) const {
    R sum = 0;
    for (int64_t c = 0; c < size; ++c) sum += body(Columns{c, 1});
    return sum;
  }
  // The largest of body(columns), or -infinity; NaN counts for nothing unless
  // it comes last.
  template <typename Body>
  SOFTMOE_INLINE R RowMax(int64_t size, const Body& body) const {
    R largest = R(-__builtin_inff());
    for (int64_t c = 0; c < size; ++c) {
      largest = Max(largest, body(Columns{c, 1}));
    }
    return largest;
  }
  // Load, with `fill` where Real has more columns than `at`.
  SOFTMOE_INLINE R LoadOr(const R* row, Columns at, R /*fill*/) const {
    return row[at.begin];
  }
  // What any lane wrote before, all lanes see behind.
  SOFTMOE_INLINE void Sync() const {}
  // True for the one lane that writes what the group has once.
  SOFTMOE_INLINE bool IsFirst() const { return true; }
};

#ifdef SOFTMOE_CUDA

// One row per CUDA thread.
struct CudaThread : SerialLane<float> {};

// The sum, and the largest, of one value per lane of a warp of which all lanes
// are active: a butterfly, so every lane gets the same bits.
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
  __device__ __forceinline__ float Load(const float* row, Columns at) const {
    return row[at.begin];
  }
  __device__ __forceinline__ float LoadOr(const float* row, Columns at,
                                          float /*fill*/) const {
    return row[at.begin];
  }
  __device__ __forceinline__ void Store(float* row, Columns at,
                                        float value) const {
    row[at.begin] = value;
  }
  template <typename Body>
  __device__ __forceinline__ void ForEachColumn(int64_t size,
                                                const Body& body) const {
    for (int64_t c = Lane(); c < size; c += kThreads) body(Columns{c, 1});
  }
  __device__ __forceinline__ bool IsFirst() const { return Lane() == 0; }

 protected:
  // Of the columns of this lane.
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
    __syncthreads();  // whoever still reads what was shared last
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
  }
};

#else

// One thread with its vector unit along a row.
struct SimdLane {
  using Scalar = float;
  using Real = Floats;

  SOFTMOE_INLINE Floats Load(const float* row, Columns at) const {
    return at.count == Floats::kWidth
               ? Floats::Load(row + at.begin)
               : Floats::LoadPartial(row + at.begin, at.count);
  }
  SOFTMOE_INLINE void Store(float* row, Columns at, Floats value) const {
    if (at.count == Floats::kWidth) {
      value.Store(row + at.begin);
    } else {
      value.StorePartial(row + at.begin, at.count);
    }
  }
  template <typename Body>
  SOFTMOE_INLINE void ForEachColumn(int64_t size, const Body& body) const {
    int64_t c = 0;
    for (; c + Floats::kWidth <= size; c += Floats::kWidth) {
      body(Columns{c, Floats::kWidth});
    }
    if (c < size) body(Columns{c, static_cast<int>(size - c)});
  }
  // Column c goes to accumulator c % 64; the 64 are added by halves, 64 -> 32
  // -> ... -> 1: the same bits at every vector width. `body` must give zero
  // where all that it loads is zero (or what LoadOr fills in).
  template <typename Body>
  SOFTMOE_INLINE float RowSum(int64_t size, const Body& body) const {
    constexpr int kCount = 64 / Floats::kWidth;
    Floats sums[kCount];
    for (Floats& sum : sums) sum = Floats(0.0f);
    int64_t c = 0;
    for (; c + 64 <= size; c += 64) {
      SOFTMOE_UNROLL
      for (int i = 0; i < kCount; ++i) {
        sums[i] += body(Columns{c + i * Floats::kWidth, Floats::kWidth});
      }
    }
    SOFTMOE_UNROLL
    for (int i = 0; i < kCount; ++i, c += Floats::kWidth) {
      const int64_t left = size - c;
      if (left >= Floats::kWidth) {
        sums[i] += body(Columns{c, Floats::kWidth});
      } else if (left > 0) {
        sums[i] += body(Columns{c, static_cast<int>(left)});
      }
    }
    SOFTMOE_UNROLL
    for (int half = kCount / 2; half * Floats::kWidth >= 16; half /= 2) {
      SOFTMOE_UNROLL
      for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    Floats last[16 / Floats::kWidth];
    for (int i = 0; i < 16 / Floats::kWidth; ++i) last[i] = sums[i];
    return ReduceSum16(last);
  }
  template <typename Body>
  SOFTMOE_INLINE float RowMax(int64_t size, const Body& body) const {
    Floats largest(-__builtin_inff());
    ForEachColumn(size, [&](Columns at) { largest = Max(largest, body(at)); });
    return ReduceMax(largest);
  }
  SOFTMOE_INLINE Floats LoadOr(const float* row, Columns at, float fill) const {
    if (at.count == Floats::kWidth) return Floats::Load(row + at.begin);
    constexpr float kOnes[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const Mask there = Floats::LoadPartial(kOnes, at.count) > Floats(0.0f);
    return Select(there, Floats::LoadPartial(row + at.begin, at.count),
                  Floats(fill));
  }
  SOFTMOE_INLINE void Sync() const {}
  SOFTMOE_INLINE bool IsFirst() const { return true; }
};

// One thread with its vector unit across rows.
struct SimdRows {
  using Scalar = float;
  using Real = Floats;
  using Condition = Mask;
  using Set = Ints;
  static constexpr int kRows = Floats::kWidth;
};

#endif  // SOFTMOE_CUDA

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_GROUP_H_
