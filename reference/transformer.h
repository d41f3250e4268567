// SPDX-License-Identifier: Apache-2.0
//
// transformer.h - the whole model on one balance group: loss, routing and
// gradients (reference, double).
//
//   h = embedding[inputs];  h <- block_l(h) for each layer
//   loss = sum over tokens of cross-entropy(RMSNorm(h) W_head^T, targets)
//                                                                 SPEC.md 3.2
//
// Computes in double, in one obvious way, what optimized/model.h computes, with
// the same parameters in the same flat layout, gradient scaling and statistics.
// Mirrors optimized::Model::Forward and ForwardBackward.
#ifndef SOFTMOE_REFERENCE_TRANSFORMER_H_
#define SOFTMOE_REFERENCE_TRANSFORMER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "reference/decoder_block.h"
#include "reference/matrix.h"
#include "reference/moe_layer.h"

namespace softmoe::reference {

// Token ids of whole sequences; targets[i] follows inputs[i] in the text.
struct BalanceGroup {
  int64_t num_sequences = 0;
  std::span<const int32_t> inputs;   // [num_sequences, sequence_length]
  std::span<const int32_t> targets;  // [num_sequences, sequence_length]
  int64_t first_token = 0;  // global index of the first token: keys the noise
};

// What routing depends on besides parameters and scores, fixed for one step.
struct RoutingState {
  double temperature = 1;
  double tau = 0;      // soft routers; 0 keeps everything up to the cap
  bool noise = false;  // add the configured noise (training)
  int64_t step = 0;    // completed updates: keys the noise
};

// k_l and what follows from it (DESIGN.md, ruling 5).
struct LayerAllocation {
  double mean_active = 0;  // k_l (experts/token)
  double cutoff = 0;       // tau * k_l / num_experts; 0 if sparse
  int64_t max_active = 0;  // the cap (MaxActive); k if sparse
};

// Returns k_l, cutoff and cap of every layer for `parameters` [layout.total].
// Errors  as AllocateBudget, if k_l is learned; InternalError for a vector of
//         the wrong size, and for a sparse router whose k is not whole.
std::vector<LayerAllocation> Allocations(const Config& config,
                                         const Vector& parameters,
                                         const RoutingState& routing);

// The settings of one layer for `group`, given the layer's allocation.
DecoderBlockSettings BlockSettings(const Config& config,
                                   const BalanceGroup& group,
                                   const RoutingState& routing,
                                   const LayerAllocation& allocation,
                                   int64_t layer);

struct LayerRouting {
  LayerAllocation allocation;
  Matrix scores;        // [num_tokens, num_experts], as routed (noise added)
  RouterSaved routing;  // soft weights, gates, active set
  LoadBalance balance;  // loss includes its coefficient
  double z_loss = 0;    // includes its coefficient
};

struct GroupResult {
  double loss_sum = 0;  // nats, sum over tokens, cross-entropy only
  Vector token_losses;  // [num_tokens] nats
  std::vector<LayerRouting> layers;  // [num_layers]

  // loss_sum * loss_scale + group_scale * sum_l (load balance + z loss): what
  // TransformerLossAndGradients differentiates.
  double Objective(double loss_scale, double group_scale) const;
};

// Computes the loss and routing of one group.
//
//   parameters  [ParameterLayout(config).total]
//   replay      empty, or the selection to use in each layer
// Errors  DataError naming the token for an id outside the vocabulary;
//         NumericsError naming layer, token and expert for a score, or token
//         and vocabulary entry for a logit, that is not finite; InternalError
//         for a vector of the wrong size.
GroupResult TransformerForward(const Config& config, const Vector& parameters,
                               const BalanceGroup& group,
                               const RoutingState& routing,
                               std::span<const RoutingReplay> replay = {});

struct GroupResultAndGradients {
  GroupResult result;
  Vector gradients;  // [ParameterLayout(config).total]
  // The residual stream and the gradient with respect to it, [2*num_layers + 1]
  // matrices [num_tokens, d_model]: before and after the attention of each
  // block; last, before the final norm.
  std::vector<Matrix> stream, d_stream;
  Vector d_mean_active;  // [num_layers] with respect to k_l, gates only
};

// Also computes the gradient of Objective(loss_scale, group_scale), with the
// active sets, counts and caps held fixed, and k_l constant in the auxiliary
// losses (SPEC.md 2.2, 2.5). For a step over G groups of N tokens in all:
// loss_scale = 1/N, group_scale = 1/G.
GroupResultAndGradients TransformerLossAndGradients(
    const Config& config, const Vector& parameters, const BalanceGroup& group,
    const RoutingState& routing, double loss_scale, double group_scale,
    std::span<const RoutingReplay> replay = {});

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_TRANSFORMER_H_
