// SPDX-License-Identifier: Apache-2.0
//
// budget_formula.h - budget.h over any scalar (scalar.h).
#ifndef SOFTMOE_REFERENCE_BUDGET_FORMULA_H_
#define SOFTMOE_REFERENCE_BUDGET_FORMULA_H_

#include "reference/budget.h"
#include "reference/matrix.h"
#include "reference/softmax_formula.h"

namespace softmoe::reference::formula {

// pi = softmax(eta),  k_l = 1 + (K - L) pi_l
template <typename N>
BudgetOf<N> AllocateBudget(const N& budget, const VectorOf<N>& budget_logits) {
  const double num_layers = static_cast<double>(budget_logits.size());
  BudgetOf<N> allocated;
  allocated.shares = Softmax<N>(budget_logits);
  allocated.allocation.resize(budget_logits.size());
  for (int64_t l = 0; l < budget_logits.size(); ++l) {
    allocated.allocation[l] = 1 + (budget - num_layers) * allocated.shares[l];
  }
  return allocated;
}

// (K - L) pi_m (g_m - sum_l pi_l g_l)
template <typename N>
VectorOf<N> BudgetVjp(const N& budget, const VectorOf<N>& shares,
                      const VectorOf<N>& d_allocation) {
  const double num_layers = static_cast<double>(shares.size());
  VectorOf<N> d_logits = SoftmaxVjp<N>(shares, d_allocation);
  for (N& element : d_logits) element = (budget - num_layers) * element;
  return d_logits;
}

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_BUDGET_FORMULA_H_
