// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy_body.h - the loss of one token from its logits, for every group
// along the row (simt/group.h).
//
//   loss = logsumexp(logits) - logits[target]                        (nats)
//   d_logits = grad_scale * (softmax(logits) - one_hot(target))
//   is_greedy = target is the first of the largest logits
#ifndef SOFTMOE_KERNELS_CROSS_ENTROPY_BODY_H_
#define SOFTMOE_KERNELS_CROSS_ENTROPY_BODY_H_

#include "kernels/simt/group.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// What a softmax of a row needs of all its logits.
template <typename R>
struct ExpSum {
  R largest;
  R sum;  // of e^(logit - largest)
};

// Where a row is in a cache, its largest is found first. Where it comes from
// memory each time, one pass does: the sum is that of e^(logit - the largest so
// far), and shrinks when that grows.
template <typename Group, typename R = typename Group::Scalar>
SOFTMOE_INLINE ExpSum<R> SumOfExp(Group group, int64_t size,
                                  const R* logits) {  // [size]
  using Real = typename Group::Real;
  const R lowest = R(-__builtin_inff());
  const auto load = [&](Columns at) {
    return group.LoadOr(logits, at, lowest);
  };
  if constexpr (Group::kRowIsCached) {
    const R largest = group.RowMax(size, load);
    const R sum = group.RowSum(
        size, [&](Columns at) { return Exp(load(at) - Real(largest)); });
    return {largest, sum};
  } else {
    // Finite, so that -infinity is as far below it as below any logit.
    R mine = -__FLT_MAX__, sum = 0;
    group.ForEachColumn(size, [&](Columns at) {
      const Real x = load(at);
      const R before = mine;
      mine = Max(mine, MaxOf(x));
      sum = Fma(sum, Exp(before - mine), SumOf(Exp(x - Real(mine))));
    });
    const R largest = group.GroupMax(mine);
    return {largest, group.GroupSum(sum * Exp(mine - largest))};
  }
}

// Gradients are stored as T.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void CrossEntropyRow(Group group, int64_t vocab_size,
                                    int32_t target, R grad_scale,
                                    const R* logits,  // [vocab_size]
                                    T* d_logits,      // [vocab_size]; may be
                                                      // logits; null: not
                                                      // wanted
                                    R* loss,          // [1]
                                    // [1]; null: not wanted
                                    int32_t* is_greedy = nullptr) {
  using Real = typename Group::Real;
  const ExpSum<R> exp_sum = SumOfExp(group, vocab_size, logits);
  const R target_logit = logits[target] - exp_sum.largest;
  if (is_greedy != nullptr) {
    const R lowest = R(-__builtin_inff());
    const R before = group.RowMax(
        target, [&](Columns at) { return group.LoadOr(logits, at, lowest); });
    if (group.IsFirst()) {
      *is_greedy = target_logit == 0 && before < exp_sum.largest;
    }
  }
  if (group.IsFirst()) *loss = Log(exp_sum.sum) - target_logit;
  if (d_logits == nullptr) return;
  group.Sync();  // all have read it before its owner overwrites it
  const R factor = grad_scale / exp_sum.sum;
  group.ForEachColumn(vocab_size, [&](Columns at) {
    group.Store(
        d_logits, at,
        Exp(group.Load(logits, at) - Real(exp_sum.largest)) * Real(factor));
  });
  group.Sync();  // its owner has written it
  // Computed from the logit, since what has been stored is rounded.
  if (group.IsFirst()) {
    group.StoreOne(d_logits, target, Exp(target_logit) * factor - grad_scale);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_CROSS_ENTROPY_BODY_H_
