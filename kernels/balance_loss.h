// SPDX-License-Identifier: Apache-2.0
//
// balance_loss.h - the auxiliary losses of a balance group from the sums of its
// router (SPEC.md 2.5), and what the router's backward pass needs of them.
//
//   f_i = counts_i / sum counts          (1/E if nothing is counted)
//   load balance = aux_loss_coeff * E * sum_i f_i P_i,  P_i = sums_i / N
//   z            = z_loss_coeff * z_sum / N
// f_i is held constant in the gradient (DESIGN.md, ruling 6).
#ifndef SOFTMOE_KERNELS_BALANCE_LOSS_H_
#define SOFTMOE_KERNELS_BALANCE_LOSS_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

struct BalanceLossArgs {
  int64_t num_tokens, num_experts;  // N, E
  double aux_loss_coeff, z_loss_coeff;
  double group_scale;              // multiplies both losses in the gradient
  const int64_t* balance_counts;   // [num_experts], of RouterForward
  const double* probability_sums;  // [num_experts], of RouterForward
  const double* z_sum;             // [1], of RouterForward
  double* load_balance_loss;       // [1], =
  double* z_loss;                  // [1], =
  float* d_probability;            // [num_experts]  for RouterBackward, =
};
SOFTMOE_DECLARE_KERNEL(BalanceLoss);
template <typename F>
void ForEachArray(BalanceLossArgs& a, const F& f) {
  f("balance_counts", a.balance_counts, a.num_experts);
  f("probability_sums", a.probability_sums, a.num_experts);
  f("z_sum", a.z_sum, 1);
  f("load_balance_loss", a.load_balance_loss, 1);
  f("z_loss", a.z_loss, 1);
  f("d_probability", a.d_probability, a.num_experts);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_BALANCE_LOSS_H_
