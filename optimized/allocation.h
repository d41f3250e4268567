// SPDX-License-Identifier: Apache-2.0
//
// allocation.h - how many experts each layer may spend. Computed on the host,
// in double, once per step (DESIGN.md, ruling 5).
//
//   k_l = 1 + (K - L) softmax(budget_logits)_l,   K = mean_active_experts * L
//
// for soft_learned; k_l = mean_active_experts for the others (SPEC.md 2.1-2.2).
#ifndef SOFTMOE_OPTIMIZED_ALLOCATION_H_
#define SOFTMOE_OPTIMIZED_ALLOCATION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/config/config.h"

namespace softmoe::optimized {

// k_l and the numbers that follow from it.
struct LayerAllocation {
  double mean_active;   // k_l
  double cutoff;        // tau * k_l / num_experts; sparse: 0
  int64_t max_active;   // ceil(expansion_factor * k_l - 1e-6), at most E;
                        // sparse: k
  int64_t balance_top;  // ceil(k_l - 1e-6): experts per token that the
                        // "megatron" load balance counts; sparse: k
};

// Returns the allocation of every layer.
//
//   budget_logits  [num_layers], finite; empty unless soft_learned
//   tau            >= 0                                        (dimensionless)
// Errors   DivergedError if a budget logit is not finite (names the layer).
std::vector<LayerAllocation> ComputeAllocations(
    const Config& config, std::span<const float> budget_logits, double tau);

// The allocations before the first update, when all budget logits are 0.
std::vector<LayerAllocation> InitialAllocations(const Config& config,
                                                double tau);

// K - L: the budget beyond the first expert of each layer.
double SpareBudget(const Config& config);

// pi, each layer's share of SpareBudget: the softmax of the budget logits.
//
// Errors   DivergedError if a budget logit is not finite (names the layer).
std::vector<double> BudgetShares(std::span<const float> budget_logits);

// The largest cap that a layer can ever get, whatever the budget logits say.
int64_t LargestMaxActive(const Config& config);

// An upper bound of the caps of all layers together: how many experts a token
// can activate in the whole model. Tight, since the k_l add up to K.
int64_t LargestTotalActive(const Config& config);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_ALLOCATION_H_
