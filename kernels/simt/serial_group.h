// SPDX-License-Identifier: Apache-2.0
//
// serial_group.h - the group of one thread, one element at a time (group.h).
#ifndef SOFTMOE_KERNELS_SIMT_SERIAL_GROUP_H_
#define SOFTMOE_KERNELS_SIMT_SERIAL_GROUP_H_

#include <cstdint>

#include "kernels/simt/scalar.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Where a group stands in a row: `count` columns from `begin` on.
struct Columns {
  int64_t begin;
  int count;
};

// One thread, one element at a time.
template <typename R>
struct SerialLane {
  using Scalar = R;        // type in memory
  using Real = R;          // type of arithmetic
  using Condition = bool;  // a comparison of Reals
  using Set = int32_t;     // up to 32 members, for each row of Real

  // Whether a row that has been read is near, so that a second pass is cheap.
  static constexpr bool kRowIsCached = true;

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
  // Stores what one lane writes: a Scalar, not a Real.
  SOFTMOE_INLINE void StoreOne(R* row, int64_t column, R value) const {
    row[column] = value;
  }
  // After it all lanes see what any lane wrote before it.
  SOFTMOE_INLINE void Sync() const {}
  // True for the one lane that writes what the group writes once.
  SOFTMOE_INLINE bool IsFirst() const { return true; }
};

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_SERIAL_GROUP_H_
