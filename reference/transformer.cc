// SPDX-License-Identifier: Apache-2.0
#include "reference/transformer.h"

#include <string>
#include <utility>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "reference/budget.h"
#include "reference/decoder_block.h"
#include "reference/embedding.h"
#include "reference/flat_parameters.h"
#include "reference/lm_head.h"
#include "reference/rmsnorm.h"
#include "reference/router.h"

namespace softmoe::reference {
namespace {

// K = k L, in experts per token summed over layers.
double TotalBudget(const Config& config) {
  return config.router.mean_active_experts *
         static_cast<double>(config.model.num_layers);
}

Budget LearnedBudget(const Config& config, const ParameterLayout& layout,
                     const Vector& parameters) {
  return AllocateBudget(
      TotalBudget(config),
      parameters.segment(layout.budget_logits, config.model.num_layers));
}

void CheckParameters(const ParameterLayout& layout, const Vector& parameters) {
  SOFTMOE_CHECK(parameters.size() == layout.total)
      << parameters.size() << " parameters, the configuration has "
      << layout.total;
}

void CheckGroup(const Config& config, const BalanceGroup& group,
                std::span<const RoutingReplay> replay) {
  const int64_t num_tokens = group.num_sequences * config.model.sequence_length;
  SOFTMOE_CHECK(num_tokens > 0 &&
                static_cast<int64_t>(group.inputs.size()) == num_tokens &&
                static_cast<int64_t>(group.targets.size()) == num_tokens)
      << group.inputs.size() << " inputs, " << group.targets.size()
      << " targets, " << group.num_sequences << " sequences of "
      << config.model.sequence_length;
  SOFTMOE_CHECK(replay.empty() ||
                static_cast<int64_t>(replay.size()) == config.model.num_layers)
      << replay.size() << " replayed layers";
}

// One layer of the forward pass, kept for the backward pass.
struct Layer {
  DecoderBlockSettings settings;
  DecoderBlockWeights weights;
  Matrix hidden;  // [num_tokens, d_model], the block's input
  DecoderBlockSaved saved;
};

struct Activations {
  std::vector<Layer> layers;
  Matrix last_hidden;  // [num_tokens, d_model], the last block's output
  Vector final_norm;   // [d_model]
  Matrix head_input;   // [num_tokens, d_model], normalised
  Matrix head_weight;  // [vocab_size, d_model]
};

DecoderBlockResult BlockForward(const Layer& layer, int64_t index,
                                const RoutingReplay* replay) {
  try {
    return DecoderBlockForward(layer.settings, layer.weights, layer.hidden,
                               replay);
  } catch (const NumericsError& error) {
    throw NumericsError("layer " + std::to_string(index) + ": " + error.what());
  }
}

GroupResult Forward(const Config& config, const Vector& parameters,
                    const BalanceGroup& group, const RoutingState& routing,
                    std::span<const RoutingReplay> replay,
                    Activations* activations) {
  const ModelConfig& model = config.model;
  const ParameterLayout layout(config);
  CheckParameters(layout, parameters);
  CheckGroup(config, group, replay);
  const std::vector<LayerAllocation> allocations =
      Allocations(config, parameters, routing);

  GroupResult result;
  Matrix hidden = EmbeddingForward(
      group.inputs, ReadMatrix(parameters, layout.embedding, model.vocab_size,
                               model.d_model));
  for (int64_t l = 0; l < model.num_layers; ++l) {
    Layer layer;
    layer.settings = BlockSettings(config, group, routing, allocations[l], l);
    layer.weights = ReadBlock(model, layout, l, parameters);
    layer.hidden = hidden;
    DecoderBlockResult block =
        BlockForward(layer, l, replay.empty() ? nullptr : &replay[l]);
    hidden = block.out;
    const MoeLayerSaved& moe = block.saved.moe;
    result.layers.push_back({.allocation = allocations[l],
                             .scores = moe.scores,
                             .routing = moe.routing,
                             .balance = moe.balance,
                             .z_loss = moe.z_loss});
    layer.saved = std::move(block.saved);
    activations->layers.push_back(std::move(layer));
  }
  activations->last_hidden = hidden;
  activations->final_norm =
      ReadMatrix(parameters, layout.final_norm, model.d_model, 1);
  activations->head_input =
      RmsNormForward(hidden, activations->final_norm, model.norm_epsilon);
  activations->head_weight = ReadMatrix(parameters, layout.head_weight,
                                        model.vocab_size, model.d_model);
  result.token_losses = TokenLosses(
      LmHeadLogits(activations->head_input, activations->head_weight),
      group.targets);
  result.loss_sum = result.token_losses.sum();
  return result;
}

}  // namespace

std::vector<LayerAllocation> Allocations(const Config& config,
                                         const Vector& parameters,
                                         const RoutingState& routing) {
  const ParameterLayout layout(config);
  CheckParameters(layout, parameters);
  const int64_t num_layers = config.model.num_layers;
  const int64_t num_experts = config.model.num_experts;
  const bool sparse = config.router.kind == RouterKind::kSparse;
  Vector mean_active =
      Vector::Constant(num_layers, config.router.mean_active_experts);
  if (config.router.kind == RouterKind::kSoftLearned) {
    mean_active = LearnedBudget(config, layout, parameters).allocation;
  }
  std::vector<LayerAllocation> allocations;
  for (int64_t l = 0; l < num_layers; ++l) {
    LayerAllocation layer;
    layer.mean_active = mean_active[l];
    layer.cutoff =
        sparse ? 0 : Cutoff(routing.tau, layer.mean_active, num_experts);
    layer.max_active = sparse ? static_cast<int64_t>(layer.mean_active)
                              : MaxActive(config.router.expansion_factor,
                                          layer.mean_active, num_experts);
    SOFTMOE_CHECK(!sparse || layer.max_active == layer.mean_active)
        << "sparse routing takes an integer k, not " << layer.mean_active;
    allocations.push_back(layer);
  }
  return allocations;
}

DecoderBlockSettings BlockSettings(const Config& config,
                                   const BalanceGroup& group,
                                   const RoutingState& routing,
                                   const LayerAllocation& allocation,
                                   int64_t layer) {
  DecoderBlockSettings settings;
  settings.num_sequences = group.num_sequences;
  settings.num_heads = config.model.num_heads;
  settings.rope_base = config.model.rope_base;
  settings.norm_epsilon = config.model.norm_epsilon;

  MoeLayerSettings& moe = settings.moe;
  moe.router.kind = config.router.kind;
  moe.router.mean_active = allocation.mean_active;
  moe.router.temperature = routing.temperature;
  moe.router.cutoff = allocation.cutoff;
  moe.router.max_active = allocation.max_active;
  moe.router.fallback = config.router.fallback;
  moe.noise.kind = routing.noise ? config.router.noise : NoiseKind::kNone;
  moe.noise.amplitude = config.router.noise_amplitude;
  moe.noise.seed = static_cast<uint64_t>(config.training.seed);
  moe.noise.step = static_cast<uint32_t>(routing.step);
  moe.noise.layer = static_cast<uint32_t>(layer);
  moe.first_token = group.first_token;
  moe.load_balance = config.router.load_balance;
  moe.aux_loss_coeff = config.router.aux_loss_coeff;
  moe.z_loss_coeff = config.router.z_loss_coeff;
  return settings;
}

double GroupResult::Objective(double loss_scale, double group_scale) const {
  double auxiliary = 0;
  for (const LayerRouting& layer : layers) {
    auxiliary += layer.balance.loss + layer.z_loss;
  }
  return loss_sum * loss_scale + group_scale * auxiliary;
}

GroupResult TransformerForward(const Config& config, const Vector& parameters,
                               const BalanceGroup& group,
                               const RoutingState& routing,
                               std::span<const RoutingReplay> replay) {
  Activations activations;
  return Forward(config, parameters, group, routing, replay, &activations);
}

GroupResultAndGradients TransformerLossAndGradients(
    const Config& config, const Vector& parameters, const BalanceGroup& group,
    const RoutingState& routing, double loss_scale, double group_scale,
    std::span<const RoutingReplay> replay) {
  const ModelConfig& model = config.model;
  const ParameterLayout layout(config);
  Activations activations;
  GroupResultAndGradients all;
  all.result =
      Forward(config, parameters, group, routing, replay, &activations);
  all.gradients = Vector::Zero(layout.total);

  const LmHeadGradients head = LmHeadBackward(
      activations.head_input, activations.head_weight, group.targets,
      Vector::Constant(all.result.token_losses.size(), loss_scale));
  WriteMatrix(head.d_head_weight, layout.head_weight, &all.gradients);
  const RmsNormGradients final_norm =
      RmsNormBackward(activations.last_hidden, activations.final_norm,
                      model.norm_epsilon, head.d_hidden);
  WriteMatrix(final_norm.d_weight, layout.final_norm, &all.gradients);

  all.stream.resize(2 * model.num_layers + 1);
  all.d_stream.resize(2 * model.num_layers + 1);
  all.stream.back() = activations.last_hidden;
  all.d_stream.back() = final_norm.d_hidden;
  all.d_mean_active = Vector::Zero(model.num_layers);
  for (int64_t l = model.num_layers - 1; l >= 0; --l) {
    const Layer& layer = activations.layers[l];
    const DecoderBlockGradients block =
        DecoderBlockBackward(layer.settings, layer.weights, layer.hidden,
                             layer.saved, all.d_stream[2 * l + 2], group_scale);
    WriteBlock(block.d_weights, layout, l, &all.gradients);
    all.d_mean_active[l] = block.d_mean_active;
    all.stream[2 * l] = layer.hidden;
    all.stream[2 * l + 1] = layer.saved.middle;
    all.d_stream[2 * l] = block.d_hidden;
    all.d_stream[2 * l + 1] = block.d_middle;
  }
  WriteMatrix(
      EmbeddingBackward(group.inputs, all.d_stream.front(), model.vocab_size),
      layout.embedding, &all.gradients);
  if (config.router.kind == RouterKind::kSoftLearned) {
    WriteMatrix(
        BudgetVjp(TotalBudget(config),
                  LearnedBudget(config, layout, parameters), all.d_mean_active),
        layout.budget_logits, &all.gradients);
  }
  return all;
}

}  // namespace softmoe::reference
