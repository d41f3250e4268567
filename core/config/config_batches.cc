// SPDX-License-Identifier: Apache-2.0
#include "core/config/config_batches.h"

#include <algorithm>

namespace softmoe {
namespace {

constexpr int64_t kMaxSequences = 1 << 20;  // as in config_fields.h

bool InRange(int64_t sequences) {
  return sequences >= 1 && sequences <= kMaxSequences;
}

}  // namespace

int64_t NearestDivisor(int64_t number, int64_t wanted, int64_t unit) {
  int64_t best = 0;
  const auto consider = [&](int64_t divisor) {
    if (divisor % unit != 0) return;
    // The larger of `a` and `wanted` over the smaller, in products.
    const auto above = [&](int64_t a, int64_t b) {
      return std::max(a, wanted) * std::min(b, wanted);
    };
    if (best == 0 || above(divisor, best) < above(best, divisor)) {
      best = divisor;
    }
  };
  for (int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    consider(d);
    consider(number / d);
  }
  return best;
}

void FollowBatchSizes(bool micro_batch_set, bool balance_group_set,
                      TrainingConfig* training) {
  const TrainingConfig defaults;
  const int64_t batch = training->global_batch_sequences;
  int64_t& micro = training->micro_batch_sequences;
  int64_t& group = training->balance_group_sequences;
  if (!micro_batch_set) micro = defaults.micro_batch_sequences;
  if (!balance_group_set) group = defaults.balance_group_sequences;
  if (!InRange(batch) || !InRange(micro) || !InRange(group)) return;
  if (!micro_batch_set) {
    // Groups that do not divide the batch are a separate error.
    const bool whole_groups = balance_group_set && batch % group == 0;
    micro = NearestDivisor(batch, micro, whole_groups ? group : 1);
  }
  if (!balance_group_set) {
    // One complaint, about the micro-batch, is enough.
    const bool divides = batch % micro == 0;
    group =
        NearestDivisor(divides ? micro : NearestDivisor(batch, micro), group);
  }
}

}  // namespace softmoe
