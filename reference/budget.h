// SPDX-License-Identifier: Apache-2.0
//
// budget.h - how many experts each layer may use, learned under one budget.
//
//   pi = softmax(eta),  k_l = 1 + (K - L) pi_l      paper, Sec. 4; SPEC.md 2.2
//
// so k_l >= 1 and sum_l k_l = K whatever eta. eta = 0 at the start: k_l = K/L.
// With K = L nothing can be learned: every k_l is 1. Nothing keeps k_l below
// the number of experts; above it every weight is 1 (lapsum.h).
#ifndef SOFTMOE_REFERENCE_BUDGET_H_
#define SOFTMOE_REFERENCE_BUDGET_H_

#include <cstdint>

#include "reference/matrix.h"
#include "reference/softmax.h"

namespace softmoe::reference {

template <typename N>
struct BudgetOf {
  VectorOf<N> shares;      // [layers] pi_l, sum 1
  VectorOf<N> allocation;  // [layers] k_l >= 1, sum K   (experts per token)
};
using Budget = BudgetOf<double>;

// Returns the allocation of a budget.
//
//   budget         K >= L, finite                     (experts per token)
//   budget_logits  [layers] eta, finite, L >= 1
// Errors  ConfigError if K < L; NumericsError naming the layer of a logit that
//         is not finite.
Budget AllocateBudget(double budget, const Vector& budget_logits);

// Returns d loss / d budget_logits: (K - L) pi_m (g_m - sum_l pi_l g_l) for
// g = d_allocation [layers]. Its elements sum to 0.
Vector BudgetVjp(double budget, const Budget& allocated,
                 const Vector& d_allocation);

// The formulas, over any scalar (scalar.h).
namespace formula {

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

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_BUDGET_H_
