// SPDX-License-Identifier: Apache-2.0
//
// simd_groups.h - one thread of the CPU with its vector unit (group.h).
#ifndef SOFTMOE_KERNELS_SIMT_SIMD_GROUPS_H_
#define SOFTMOE_KERNELS_SIMT_SIMD_GROUPS_H_

#include "kernels/simd/simd.h"
#include "kernels/simt/serial_group.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// One thread with its vector unit along a row.
struct SimdLane {
  using Scalar = float;
  using Real = Floats;
  static constexpr bool kRowIsCached = true;

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
  SOFTMOE_INLINE void StoreOne(float* row, int64_t column, float value) const {
    row[column] = value;
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

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_SIMD_GROUPS_H_
