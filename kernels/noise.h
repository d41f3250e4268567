// SPDX-License-Identifier: Apache-2.0
//
// noise.h - the router's noise while training (SPEC.md 2.4), addressed by
// Philox: key = {seed, kRouterNoise, step, layer}; the index is
// token * ceil(width/4) + column/4 with the token's global number, so a draw
// does not depend on how tokens are split over ranks, groups or threads.
//
// Computed in double and rounded to float once, as the reference does.
#ifndef SOFTMOE_KERNELS_NOISE_H_
#define SOFTMOE_KERNELS_NOISE_H_

#include <cstdint>

#include "core/parallel_for.h"
#include "core/philox.h"

namespace softmoe::kernels {

// y = x * factor, factor_j = 1 - amplitude + 2*amplitude*u_j, u_j uniform in
// [0, 1) from word j%4. The gradient of the same: x = d_jittered and
// accumulate = true adds d_jittered * factor to y = d_hidden.
template <typename X, typename Y>  // float; on a device one of them also Bf16
struct InputJitterArgsOf {
  int64_t num_tokens, d_model;
  int64_t first_token;  // global number of row 0
  RandomKey key;
  double amplitude;         // epsilon, in [0, 1)
  const X* x;               // [num_tokens, d_model]
  Y* y;                     // [num_tokens, d_model]; may be x
  bool accumulate = false;  // y += instead of y =
};
using InputJitterArgs = InputJitterArgsOf<float, float>;
void InputJitter(const InputJitterArgs& args, ThreadPool& pool);
template <typename X, typename Y, typename F>
void ForEachArray(InputJitterArgsOf<X, Y>& a, const F& f) {
  f("x", a.x, a.num_tokens * a.d_model);
  f("y", a.y, a.num_tokens * a.d_model);
}

// scores += sigma * z, z standard normal; its gradient is the identity.
struct LogitNoiseArgs {
  int64_t num_tokens, num_experts;
  int64_t first_token;
  RandomKey key;
  double sigma;
  float* scores;  // [num_tokens, num_experts]
};
void LogitNoise(const LogitNoiseArgs& args, ThreadPool& pool);
template <typename F>
void ForEachArray(LogitNoiseArgs& a, const F& f) {
  f("scores", a.scores, a.num_tokens * a.num_experts);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_NOISE_H_
