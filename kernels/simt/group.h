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
#ifndef SOFTMOE_CUDA
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
  // True for the one lane that writes what the group has once.
  SOFTMOE_INLINE bool IsFirst() const { return true; }
};

#ifdef SOFTMOE_CUDA

// One row per CUDA thread.
struct CudaThread : SerialLane<float> {};

// One row per warp of 32 threads, all of them active.
struct CudaWarp {
  using Scalar = float;
  using Real = float;

  __device__ __forceinline__ int Lane() const { return threadIdx.x % 32; }
  __device__ __forceinline__ float Load(const float* row, Columns at) const {
    return row[at.begin];
  }
  __device__ __forceinline__ void Store(float* row, Columns at,
                                        float value) const {
    row[at.begin] = value;
  }
  template <typename Body>
  __device__ __forceinline__ void ForEachColumn(int64_t size,
                                                const Body& body) const {
    for (int64_t c = Lane(); c < size; c += 32) body(Columns{c, 1});
  }
  // Lane sums, then a butterfly: every lane gets the same bits.
  template <typename Body>
  __device__ __forceinline__ float RowSum(int64_t size,
                                          const Body& body) const {
    float sum = 0;
    for (int64_t c = Lane(); c < size; c += 32) sum += body(Columns{c, 1});
    for (int mask = 16; mask > 0; mask /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    }
    return sum;
  }
  __device__ __forceinline__ bool IsFirst() const { return Lane() == 0; }
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
  // where all that it loads is zero.
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
