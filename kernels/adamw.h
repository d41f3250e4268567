// SPDX-License-Identifier: Apache-2.0
//
// adamw.h - AdamW over a flat buffer, and the gradient norm for clipping.
#ifndef SOFTMOE_KERNELS_ADAMW_H_
#define SOFTMOE_KERNELS_ADAMW_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

// One update, with g = gradient_scale * gradient:
//   m  = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
//   p -= lr * (m*bias1 / (sqrt(v*bias2) + epsilon) + weight_decay * p)
struct AdamWArgs {
  int64_t size;
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  float bias1, bias2;     // 1/(1 - beta1^t), 1/(1 - beta2^t)
  float gradient_scale;   // clipping factor
  const float* gradient;  // [size]
  float* parameter;       // [size]
  float* first_moment;    // [size]
  float* second_moment;   // [size]
};
SOFTMOE_DECLARE_KERNEL(AdamW);
template <typename F>
void ForEachArray(AdamWArgs& a, const F& f) {
  f("gradient", a.gradient, a.size);
  f("parameter", a.parameter, a.size);
  f("first_moment", a.first_moment, a.size);
  f("second_moment", a.second_moment, a.size);
}

// Sum of squares in double, in fixed blocks. `scratch` is overwritten with the
// sums of the blocks, which the CPU adds in their order.
struct SumOfSquaresArgs {
  int64_t size;
  const float* x;   // [size]
  double* result;   // [1]
  double* scratch;  // [SumOfSquaresScratch(size)]
};
SOFTMOE_DECLARE_KERNEL(SumOfSquares);
// The second half of it, where blocks come from several arrays: the same bits as
// of one array that has them all.
struct SumOfBlocksArgs {
  int64_t blocks;
  const double* scratch;  // [blocks]
  double* result;         // [1]
};
SOFTMOE_DECLARE_KERNEL(SumOfBlocks);
inline constexpr int64_t kSumOfSquaresBlock = 4096;
constexpr int64_t SumOfSquaresScratch(int64_t size) {
  return (size + kSumOfSquaresBlock - 1) / kSumOfSquaresBlock;
}
template <typename F>
void ForEachArray(SumOfSquaresArgs& a, const F& f) {
  f("x", a.x, a.size);
  f("result", a.result, 1);
  f("scratch", a.scratch, SumOfSquaresScratch(a.size));
}

// y += x over [size].
template <typename X, typename Y>  // float; on a device Y also Bf16
struct AddArgsOf {
  int64_t size;
  const X* x;
  Y* y;
};
using AddArgs = AddArgsOf<float, float>;
SOFTMOE_DECLARE_KERNEL(Add);
template <typename X, typename Y, typename F>
void ForEachArray(AddArgsOf<X, Y>& a, const F& f) {
  f("x", a.x, a.size);
  f("y", a.y, a.size);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_ADAMW_H_
