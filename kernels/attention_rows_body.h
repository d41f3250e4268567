// SPDX-License-Identifier: Apache-2.0
//
// attention_rows_body.h - softmax of a query's scores under the causal mask,
// and its gradient, for every group along the row (simt/group.h). (The CPU
// computes both inside its tiles: attention.cc.)
#ifndef SOFTMOE_KERNELS_ATTENTION_ROWS_BODY_H_
#define SOFTMOE_KERNELS_ATTENTION_ROWS_BODY_H_

#include "kernels/simt/group.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// weights = softmax(scale * scores) over the first `visible` keys, zero from
// there to `num_keys`. Weights are stored as T; `scores` are overwritten.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void CausalSoftmaxRow(Group group, int64_t visible,
                                     int64_t num_keys, R scale,
                                     R* scores,         // [num_keys]
                                     T* weights,        // [num_keys]; may be
                                                        // scores
                                     R* log_sum_exp) {  // [1]
  using Real = typename Group::Real;
  const R lowest = R(-__builtin_inff());
  const R largest = scale * group.RowMax(visible, [&](Columns at) {
    return group.LoadOr(scores, at, lowest);
  });
  const R sum = group.RowSum(visible, [&](Columns at) {
    const Real e =
        Exp(Fma(group.LoadOr(scores, at, lowest), Real(scale), Real(-largest)));
    group.Store(scores, at, e);
    return e;
  });
  const R inverse = R(1) / sum;
  group.ForEachColumn(visible, [&](Columns at) {
    group.Store(weights, at, group.Load(scores, at) * Real(inverse));
  });
  group.ForEachColumn(num_keys - visible, [&](Columns at) {
    group.Store(weights + visible, at, Real(0));
  });
  if (group.IsFirst()) *log_sum_exp = largest + Log(sum);
}

// From scores, and d_weights = d_out values^T, to
//   weights   P = exp(scale * scores - log_sum_exp)
//   d_scores  scale * P * (d_weights - delta),  delta = <d_out, out>
// over the first `visible` keys, zero from there to `num_keys`. These and
// activations are stored as T; they may be where scores and d_weights are.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void CausalSoftmaxBackwardRow(Group group, int64_t visible,
                                             int64_t num_keys, int64_t head_dim,
                                             R scale, R log_sum_exp,
                                             const T* out,        // [head_dim]
                                             const T* d_out,      // [head_dim]
                                             const R* scores,     // [num_keys]
                                             const R* d_weights,  // [num_keys]
                                             T* weights,          // [num_keys]
                                             T* d_scores) {       // [num_keys]
  using Real = typename Group::Real;
  const R delta = group.RowSum(head_dim, [&](Columns at) {
    return group.Load(out, at) * group.Load(d_out, at);
  });
  group.ForEachColumn(visible, [&](Columns at) {
    const Real weight =
        Exp(Fma(group.Load(scores, at), Real(scale), Real(-log_sum_exp)));
    group.Store(weights, at, weight);
    group.Store(
        d_scores, at,
        weight * Real(scale) * (group.Load(d_weights, at) - Real(delta)));
  });
  group.ForEachColumn(num_keys - visible, [&](Columns at) {
    group.Store(weights + visible, at, Real(0));
    group.Store(d_scores + visible, at, Real(0));
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ATTENTION_ROWS_BODY_H_
