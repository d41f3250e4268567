// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm.h - y = x * rstd * weight, rstd = 1/sqrt(mean(x^2) + epsilon).
#ifndef SOFTMOE_KERNELS_RMSNORM_H_
#define SOFTMOE_KERNELS_RMSNORM_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

template <typename Activation>  // float; on a device also Bf16
struct RmsNormForwardArgsOf {
  int64_t num_tokens, d_model;
  float epsilon;
  const Activation* x;  // [num_tokens, d_model]
  const float* weight;  // [d_model]
  Activation* y;        // [num_tokens, d_model]
  float* rstd;          // [num_tokens]
};
using RmsNormForwardArgs = RmsNormForwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(RmsNormForward);
template <typename Activation, typename F>
void ForEachArray(RmsNormForwardArgsOf<Activation>& a, const F& f) {
  f("x", a.x, a.num_tokens * a.d_model);
  f("weight", a.weight, a.d_model);
  f("y", a.y, a.num_tokens * a.d_model);
  f("rstd", a.rstd, a.num_tokens);
}

template <typename Activation>
struct RmsNormBackwardArgsOf {
  int64_t num_tokens, d_model;
  const Activation* x;    // [num_tokens, d_model]
  const float* weight;    // [d_model]
  const float* rstd;      // [num_tokens]
  const Activation* d_y;  // [num_tokens, d_model]
  Activation* d_x;        // [num_tokens, d_model], += (residual stream)
  float* d_weight;        // [d_model], =
  float* scratch;         // [RmsNormScratch(num_tokens, d_model)]
};
using RmsNormBackwardArgs = RmsNormBackwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(RmsNormBackward);

// Tokens whose d_weight is summed into one partial result.
inline constexpr int64_t kRmsNormTokenBlock = 64;

// Floats of scratch: one partial d_weight per fixed block of tokens, so that
// the sum does not depend on threads.
constexpr int64_t RmsNormScratch(int64_t num_tokens, int64_t d_model) {
  return (num_tokens + kRmsNormTokenBlock - 1) / kRmsNormTokenBlock * d_model;
}
template <typename Activation, typename F>
void ForEachArray(RmsNormBackwardArgsOf<Activation>& a, const F& f) {
  f("x", a.x, a.num_tokens * a.d_model);
  f("weight", a.weight, a.d_model);
  f("rstd", a.rstd, a.num_tokens);
  f("d_y", a.d_y, a.num_tokens * a.d_model);
  f("d_x", a.d_x, a.num_tokens * a.d_model);
  f("d_weight", a.d_weight, a.d_model);
  f("scratch", a.scratch, RmsNormScratch(a.num_tokens, a.d_model));
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_RMSNORM_H_
