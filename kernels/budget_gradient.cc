// SPDX-License-Identifier: Apache-2.0
#include "kernels/budget_gradient.h"

#include "kernels/budget_gradient_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {

void BudgetGradient(const BudgetGradientArgs& args, ThreadPool& /*pool*/) {
  BudgetGradientOfLayers(args);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
