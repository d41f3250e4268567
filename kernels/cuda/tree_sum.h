// SPDX-License-Identifier: Apache-2.0
//
// tree_sum.h - many numbers combined by the threads of one block, in an order
// that depends on how many there are and on nothing else.
#ifndef SOFTMOE_KERNELS_CUDA_TREE_SUM_H_
#define SOFTMOE_KERNELS_CUDA_TREE_SUM_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/simd/inline.h"
#include "kernels/simt/shared_memory.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// term(0), ..., term(count - 1) combined: strip s takes the terms s,
// s + kStrips, ... one after another; then the strips are combined by halves.
// A block has kColumns such trees, side by side, and kStrips * kColumns
// threads, all of which call this; the threads of strip 0 get the result.
template <int kStrips, int kColumns, typename Real, typename Term,
          typename Combine>
__device__ Real CombineInTree(int strip, int column, int64_t count, Real none,
                              const Term& term, const Combine& combine) {
  SOFTMOE_SHARED(Real, strips, [kStrips][kColumns]);
  Real mine = none;
  for (int64_t i = strip; i < count; i += kStrips) {
    mine = combine(mine, term(i));
  }
  strips[strip][column] = mine;
  for (int half = kStrips / 2; half > 0; half /= 2) {
    __syncthreads();
    if (strip < half) {
      mine = combine(mine, strips[strip + half][column]);
      strips[strip][column] = mine;
    }
  }
  return mine;
}

template <int kStrips, int kColumns, typename Real, typename Term>
__device__ Real SumInTree(int strip, int column, int64_t count,
                          const Term& term) {
  return CombineInTree<kStrips, kColumns>(strip, column, count, Real(0), term,
                                          [](Real a, Real b) { return a + b; });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_CUDA_TREE_SUM_H_
