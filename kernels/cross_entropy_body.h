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

// Overwrites the logits; their gradient is stored as T.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void CrossEntropyRow(Group group, int64_t vocab_size,
                                    int32_t target, R grad_scale,
                                    R* logits,    // [vocab_size]
                                    T* d_logits,  // [vocab_size]; may be
                                                  // logits; null: not wanted
                                    R* loss,      // [1]
                                    // [1]; null: not wanted
                                    int32_t* is_greedy = nullptr) {
  using Real = typename Group::Real;
  const R lowest = R(-__builtin_inff());
  const R largest = group.RowMax(
      vocab_size, [&](Columns at) { return group.LoadOr(logits, at, lowest); });
  const R target_logit = logits[target] - largest;
  if (is_greedy != nullptr) {
    const R before = group.RowMax(
        target, [&](Columns at) { return group.LoadOr(logits, at, lowest); });
    if (group.IsFirst()) *is_greedy = target_logit == 0 && before < largest;
  }
  group.Sync();  // all have read it before its owner overwrites it
  const R sum = group.RowSum(vocab_size, [&](Columns at) {
    const Real e = Exp(group.LoadOr(logits, at, lowest) - Real(largest));
    group.Store(logits, at, e);
    return e;
  });
  if (group.IsFirst()) *loss = Log(sum) - target_logit;
  if (d_logits == nullptr) return;
  const R factor = grad_scale / sum;
  group.ForEachColumn(vocab_size, [&](Columns at) {
    group.Store(d_logits, at, group.Load(logits, at) * Real(factor));
  });
  group.Sync();  // its owner has written it
  // Computed from the logit, since what has been stored is rounded.
  if (group.IsFirst()) {
    group.StoreOne(d_logits, target, Exp(target_logit) * factor - grad_scale);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_CROSS_ENTROPY_BODY_H_
