// SPDX-License-Identifier: Apache-2.0
//
// gemm.h - C = op(A) op(B), fp32, row-major, any size.
#ifndef SOFTMOE_KERNELS_GEMM_H_
#define SOFTMOE_KERNELS_GEMM_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

// Each element of C is one chain of fused multiply-adds over ascending k in
// blocks of fixed size: its bits do not depend on m, n, threads or position.
template <typename Operand, typename Result>  // float; on a device also Bf16
struct GemmArgsOf {
  const Operand* a;  // [m, k], or [k, m] if transpose_a
  const Operand* b;  // [k, n], or [n, k] if transpose_b
  Result* c;         // [m, n]
  int64_t m, n, k;
  int64_t lda, ldb, ldc;  // elements from one stored row to the next
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  // C += instead of C =
};
using GemmArgs = GemmArgsOf<float, float>;
SOFTMOE_DECLARE_KERNEL(Gemm);
template <typename Operand, typename Result, typename F>
void ForEachArray(GemmArgsOf<Operand, Result>& a, const F& f) {
  f("a", a.a, (a.transpose_a ? a.k : a.m) * a.lda);
  f("b", a.b, (a.transpose_b ? a.n : a.k) * a.ldb);
  f("c", a.c, a.m * a.ldc);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_GEMM_H_
