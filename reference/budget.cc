// SPDX-License-Identifier: Apache-2.0
#include "reference/budget.h"

#include <fmt/core.h>

#include <cmath>

#include "core/errors.h"

namespace softmoe::reference {

Budget AllocateBudget(double budget, const Vector& budget_logits) {
  const double num_layers = static_cast<double>(budget_logits.size());
  if (num_layers < 1 || !(budget >= num_layers) || !std::isfinite(budget)) {
    throw ConfigError(
        fmt::format("budget: {} experts for {} layers; every layer needs at "
                    "least one (mean_active_experts >= 1)",
                    budget, num_layers));
  }
  for (Eigen::Index l = 0; l < budget_logits.size(); ++l) {
    if (!std::isfinite(budget_logits[l])) {
      throw NumericsError(
          fmt::format("budget: the logit of layer {} is {}; it must be finite: "
                      "lower the learning rate",
                      l, budget_logits[l]));
    }
  }
  return formula::AllocateBudget<double>(budget, budget_logits);
}

Vector BudgetVjp(double budget, const Budget& allocated,
                 const Vector& d_allocation) {
  SOFTMOE_CHECK(d_allocation.size() == allocated.shares.size());
  return formula::BudgetVjp<double>(budget, allocated.shares, d_allocation);
}

}  // namespace softmoe::reference
