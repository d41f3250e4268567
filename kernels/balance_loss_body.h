// SPDX-License-Identifier: Apache-2.0
//
// balance_loss_body.h - balance_loss.h on one thread: a few hundred numbers.
#ifndef SOFTMOE_KERNELS_BALANCE_LOSS_BODY_H_
#define SOFTMOE_KERNELS_BALANCE_LOSS_BODY_H_

#include "kernels/balance_loss.h"
#include "kernels/simd/inline.h"

namespace softmoe::kernels::SOFTMOE_ISA {

SOFTMOE_INLINE void BalanceLossOfGroup(const BalanceLossArgs& a) {
  const double num_tokens = static_cast<double>(a.num_tokens);
  const double num_experts = static_cast<double>(a.num_experts);
  int64_t counted = 0;
  for (int64_t e = 0; e < a.num_experts; ++e) counted += a.balance_counts[e];
  const double balance_scale = a.group_scale * a.aux_loss_coeff * num_experts;
  double balance = 0;
  for (int64_t e = 0; e < a.num_experts; ++e) {
    // With no token routed anywhere the load counts as even.
    const double fraction = counted == 0
                                ? 1.0 / num_experts
                                : static_cast<double>(a.balance_counts[e]) /
                                      static_cast<double>(counted);
    const double load_per_token = fraction / num_tokens;
    balance += load_per_token * a.probability_sums[e];
    a.d_probability[e] = static_cast<float>(balance_scale * load_per_token);
  }
  *a.load_balance_loss = a.aux_loss_coeff * num_experts * balance;
  *a.z_loss = a.z_loss_coeff * *a.z_sum / num_tokens;
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_BALANCE_LOSS_BODY_H_
