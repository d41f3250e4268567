// SPDX-License-Identifier: Apache-2.0
//
// product.h - a dense product, given by its shape, of arrays without gaps
// between rows.
#ifndef SOFTMOE_OPTIMIZED_PRODUCT_H_
#define SOFTMOE_OPTIMIZED_PRODUCT_H_

#include <cstdint>

#include "kernels/gemm.h"

namespace softmoe::optimized {

// A product of op(a) [m, k] and op(b) [k, n], see GemmArgs.
struct ProductShape {
  int64_t m, n, k;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
};

// c = op(a) op(b)
template <typename Operand, typename Result>
kernels::GemmArgsOf<Operand, Result> DenseProduct(const Operand* a,
                                                  const Operand* b, Result* c,
                                                  const ProductShape& shape) {
  return {.a = a,
          .b = b,
          .c = c,
          .m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .lda = shape.transpose_a ? shape.m : shape.k,
          .ldb = shape.transpose_b ? shape.k : shape.n,
          .ldc = shape.n,
          .transpose_a = shape.transpose_a,
          .transpose_b = shape.transpose_b,
          .accumulate = shape.accumulate};
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PRODUCT_H_
