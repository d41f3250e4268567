// SPDX-License-Identifier: Apache-2.0
//
// budget_gradient_body.h - budget_gradient.h on one thread: a number per layer.
#ifndef SOFTMOE_KERNELS_BUDGET_GRADIENT_BODY_H_
#define SOFTMOE_KERNELS_BUDGET_GRADIENT_BODY_H_

#include "kernels/budget_gradient.h"
#include "kernels/simd/inline.h"

namespace softmoe::kernels::SOFTMOE_ISA {

SOFTMOE_INLINE void BudgetGradientOfLayers(const BudgetGradientArgs& a) {
  double mean = 0;
  for (int64_t l = 0; l < a.num_layers; ++l) {
    mean += a.shares[l] * a.d_mean_active[l];
  }
  for (int64_t l = 0; l < a.num_layers; ++l) {
    a.d_budget_logits[l] = static_cast<float>(a.spare_budget * a.shares[l] *
                                              (a.d_mean_active[l] - mean));
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_BUDGET_GRADIENT_BODY_H_
