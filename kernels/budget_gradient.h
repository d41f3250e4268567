// SPDX-License-Identifier: Apache-2.0
//
// budget_gradient.h - from the gradient of what each layer may spend on experts
// to that of the budget logits (SPEC.md 2.2):
//
//   d_budget_logits_m = (K - L) pi_m (g_m - sum_l pi_l g_l),  g = d_mean_active
#ifndef SOFTMOE_KERNELS_BUDGET_GRADIENT_H_
#define SOFTMOE_KERNELS_BUDGET_GRADIENT_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

struct BudgetGradientArgs {
  int64_t num_layers;           // L
  double spare_budget;          // K - L
  const double* shares;         // [num_layers]  pi, the softmax of the logits
  const double* d_mean_active;  // [num_layers]  d loss / d k_l
  float* d_budget_logits;       // [num_layers], =; adds up to 0 within rounding
};
SOFTMOE_DECLARE_KERNEL(BudgetGradient);
template <typename F>
void ForEachArray(BudgetGradientArgs& a, const F& f) {
  f("shares", a.shares, a.num_layers);
  f("d_mean_active", a.d_mean_active, a.num_layers);
  f("d_budget_logits", a.d_budget_logits, a.num_layers);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_BUDGET_GRADIENT_H_
