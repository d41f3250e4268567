// SPDX-License-Identifier: Apache-2.0
//
// metrics.h - what the paper's tables report about routing (SPEC.md 5.2).
//
//   active experts  AE = (1/(L N)) sum_l sum_t |A_lt|, fallback included
//   Train-AE        mean of AE over all training steps
//   Infer-AE        AE of held-out text at T = 1, noise off
//   load variance   Var_i(n)/Mean_i(n)^2, n_i = tokens routed to expert i
//   Active-Param    everything but the experts, and AE experts per layer
//
// and, for one layer, the health of its router: load entropy, dead experts,
// tokens at the cap and without an expert, truncated mass.
//
// For what the paper does not define, and its readings, see ASSUMPTIONS.md.
#ifndef SOFTMOE_REFERENCE_METRICS_H_
#define SOFTMOE_REFERENCE_METRICS_H_

#include <cstdint>
#include <vector>

#include "core/config/config.h"
#include "reference/matrix.h"

namespace softmoe::reference {

// Returns AE of one batch: the mean count of active experts over the tokens of
// all layers. `layers` holds one [tokens, experts] set per layer, all with the
// same number of tokens; in [0, experts]. Infer-AE if T = 1 and noise is off.
// Errors: InternalError if there are no tokens.
double MeanActiveExperts(const std::vector<BoolMatrix>& layers);

// Returns Train-AE, the mean of every step's AE. Errors: InternalError if there
// is no step.
double TrainActiveExperts(const std::vector<double>& active_experts_per_step);

// Returns the fraction of (token, layer) pairs without an active expert, in
// [0, 1], before Fallback::kTop1 gives them one: those whose largest soft
// weight is not above the layer's cutoff. Sparse routers: cutoff 0, fraction 0.
//
//   soft_weights  per layer [tokens, experts]
//   cutoffs       per layer
// Errors as MeanActiveExperts.
double ZeroActiveFraction(const std::vector<Matrix>& soft_weights,
                          const std::vector<double>& cutoffs);

// Returns how many tokens were routed to each expert [experts].
std::vector<int64_t> TokensPerExpert(const BoolMatrix& active);

// The three readings of "load variance", which the paper does not define; the
// variance is the population's. All 0 where no token was routed anywhere.
struct LoadVariance {
  double relative = 0;       // Var/Mean^2, the default reading
  double cv = 0;             // sd/Mean = sqrt(relative)
  double var_over_mean = 0;  // Var/Mean, in tokens
};

// Returns the readings for one layer. Errors: InternalError without experts.
LoadVariance LoadVarianceOf(const std::vector<int64_t>& tokens_per_expert);

// Returns the mean of each reading over the layers, since the paper's table has
// one number. Errors: InternalError without layers.
LoadVariance MeanLoadVariance(const std::vector<LoadVariance>& layers);

// Returns the entropy of the load of one layer in nats, -sum_i f_i ln f_i with
// f_i = n_i / sum_j n_j and 0 ln 0 = 0; in [0, ln experts], the latter for an
// even load. 0 where no token was routed anywhere. Errors: InternalError
// without experts.
double LoadEntropy(const std::vector<int64_t>& tokens_per_expert);

// Returns LoadEntropy divided by its largest value, ln experts; in [0, 1]. A
// single expert that gets all tokens has an even load: 1.
double RelativeLoadEntropy(const std::vector<int64_t>& tokens_per_expert);

// Returns how many experts got no token.
int64_t DeadExperts(const std::vector<int64_t>& tokens_per_expert);

// Returns the fraction of tokens with at least `max_active` soft weights above
// the cutoff, in [0, 1]: before Fallback::kTop1, as ZeroActiveFraction. A
// sparse router has no cutoff, and activates experts even where softmax
// underflows to a weight of 0: its cutoff is -inf here, and the fraction 1,
// since nothing but the cap limits it.
//
//   soft_weights  [tokens, experts]
//   cutoff        -inf for a sparse router
//   max_active    the cap, in [1, experts]
// Errors: InternalError if there are no tokens.
double AtCapFraction(const Matrix& soft_weights, double cutoff,
                     int64_t max_active);

// Returns the mean over the tokens of the soft weights that are not active:
// what cutoff and cap removed and no fallback gave back, in experts per token.
// With the mean sum of the gates it adds up to min(k_l, experts).
//
//   soft_weights  [tokens, experts], of a soft router
//   active        [tokens, experts], fallback included
// Errors: InternalError if there are no tokens, or for a wrong size.
double TruncatedMass(const Matrix& soft_weights, const BoolMatrix& active);

// Returns the number of parameters a token passes through when it activates
// `active_experts` experts per layer; every other parameter counts in full
// (embedding, head, attention, norms, router). At the paper's sizes
// 58,545,280 + 49,152,000 AE. Budget logits are not counted.
double ActiveParameters(const ModelConfig& model, double active_experts);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_METRICS_H_
