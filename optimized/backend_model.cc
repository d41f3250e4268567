// SPDX-License-Identifier: Apache-2.0
#include "optimized/backend_model.h"

#include <cmath>
#include <string>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/profile.h"
#include "optimized/backend_updater.h"
#include "optimized/blocks.h"
#include "optimized/memory_plan.h"
#include "optimized/rank_groups.h"
#include "optimized/ranked_updater.h"
#include "optimized/step.h"
#include "optimized/step_memory.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

void CheckTokens(const char* what, std::span<const int32_t> tokens,
                 int64_t expected, int64_t vocab_size) {
  if (static_cast<int64_t>(tokens.size()) != expected) {
    throw DataError("batch: " + std::to_string(tokens.size()) + " " + what +
                    ", but its sequences have " + std::to_string(expected) +
                    " tokens; make the batch from whole sequences");
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size) {
      throw DataError(
          "batch: " + std::string(what) + "[" + std::to_string(i) +
          "] is token " + std::to_string(tokens[i]) +
          ", outside [0, vocab_size = " + std::to_string(vocab_size) +
          "); prepare the corpus with this model's tokenizer");
    }
  }
}

}  // namespace

BackendModel::BackendModel(const Config& config, int64_t group_sequences,
                           Recompute recompute, Queue& queue,
                           Communicator* communicator)
    : config_(config),
      layout_(config),
      queue_(queue),
      parameters_(layout_, communicator, queue),
      work_(config, group_sequences * config.model.sequence_length, recompute,
            queue),
      budget_logits_(layout_.budget_logits < 0
                         ? 0
                         : static_cast<size_t>(config.model.num_layers)),
      groups_(static_cast<size_t>(work_.report.num_passes())),
      routing_copies_(static_cast<size_t>(config.model.num_layers)) {
  SOFTMOE_CHECK(config.training.precision == kPrecision);
}

std::vector<float> BackendModel::ReadParameters() const {
  return parameters_.Read();
}

void BackendModel::WriteParameters(std::span<const float> values,
                                   int64_t first) {
  const int64_t size = static_cast<int64_t>(values.size());
  SOFTMOE_CHECK(first >= 0 && size <= layout_.total - first)
      << size << " values from " << first << " on, of " << layout_.total
      << " parameters";
  parameters_.Write(values, first);
  for (size_t l = 0; l < budget_logits_.size(); ++l) {
    const int64_t at = layout_.budget_logits + static_cast<int64_t>(l) - first;
    if (at >= 0 && at < size) budget_logits_[l] = values[at];
  }
}

std::vector<LayerAllocation> BackendModel::Allocations(
    const RoutingState& routing) const {
  return ComputeAllocations(config_, budget_logits_, routing.tau);
}

void BackendModel::StartGroups(const RoutingState& routing) {
  BeginOperation("budget");
  const RouterTraits traits = TraitsOf(config_);
  SOFTMOE_CHECK(!traits.temperature ||
                (routing.temperature > 0 && std::isfinite(routing.temperature)))
      << "temperature=" << routing.temperature;
  SOFTMOE_CHECK(!traits.cutoff || routing.tau >= 0) << "tau=" << routing.tau;
  routing_ = routing;
  allocations_ = Allocations(routing);
  work_.Reserve(allocations_, queue_);
  if (budget_logits_.empty()) return;
  budget_shares_ = BudgetShares(budget_logits_);
  shares_ =
      sent_shares_.Send(queue_, budget_shares_, work_.budget_shares.data());
}

Pass BackendModel::Begin(const Batch& batch, double group_scale,
                         int64_t group) {
  BeginOperation("checks");
  const ModelConfig& m = config_.model;
  const int64_t length =
      batch.sequence_length == 0 ? m.sequence_length : batch.sequence_length;
  SOFTMOE_CHECK(length > 0 && length <= m.sequence_length)
      << "sequences of " << length << " in a model for " << m.sequence_length;
  const int64_t num_tokens = batch.num_sequences * length;
  SOFTMOE_CHECK(batch.num_sequences > 0 && num_tokens <= work_.max_tokens())
      << batch.num_sequences << " sequences in a model with memory for "
      << work_.max_tokens() / length;
  CheckTokens("inputs", batch.inputs, num_tokens, m.vocab_size);
  CheckTokens("targets", batch.targets, num_tokens, m.vocab_size);
  work_.PlaceShares(allocations_, num_tokens);
  groups_[group] = {num_tokens, batch.first_token, length};
  last_group_ = group;
  return {.config = config_,
          .layout = layout_,
          .work = work_,
          .queue = queue_,
          .routing = routing_,
          .weights = parameters_.weights().data(),
          .fp32 = parameters_.fp32(),
          .fp32_layout = parameters_.fp32_layout(),
          .inputs =
              work_.sent_inputs.Send(queue_, batch.inputs, work_.inputs.data()),
          .targets = work_.sent_targets.Send(queue_, batch.targets,
                                             work_.targets.data()),
          .group_scale = group_scale,
          .num_sequences = batch.num_sequences,
          .sequence_length = length,
          .num_tokens = num_tokens,
          .first_token = batch.first_token,
          .report = group};
}

void BackendModel::ForwardLayers(const Pass& pass) {
  const ModelConfig& m = config_.model;
  const int64_t numbers = pass.num_tokens * m.d_model;
  BeginOperation("embedding",
                 MoveWork<float>(1, numbers) + MoveWork(1, numbers));
  ops::EmbeddingForward({.num_tokens = pass.num_tokens,
                         .d_model = m.d_model,
                         .ids = pass.inputs,
                         .table = pass.fp32 + pass.fp32_layout.embedding,
                         .out = work_.layers[0].residual.data()},
                        queue_);
  for (int64_t l = 0; l < m.num_layers; ++l) {
    AttentionBlockForward(pass, l);
    Activation* out = l + 1 < m.num_layers ? work_.layers[l + 1].residual.data()
                                           : work_.final_residual.data();
    MoeBlockForward(pass, l, allocations_[l], out);
  }
}

void BackendModel::Head(const Pass& pass, double loss_scale, float* gradients) {
  const ModelConfig& m = config_.model;
  const int64_t n = pass.num_tokens;
  NormForward(pass, pass.fp32 + pass.fp32_layout.final_norm,
              work_.final_residual, work_.final_normed, work_.final_rstd);
  BeginOperation("head and loss",
                 ProductWork(gradients ? 3 : 1, n, m.vocab_size, m.d_model));
  ops::HeadCrossEntropy(
      {.num_tokens = n,
       .d_model = m.d_model,
       .vocab_size = m.vocab_size,
       .hidden = work_.final_normed.data(),
       .head_weight = pass.weights + layout_.head_weight,
       .targets = pass.targets,
       .token_loss = work_.token_loss.data(),
       .grad_scale = static_cast<float>(loss_scale),
       .d_hidden = gradients ? work_.d_normed.data() : nullptr,
       .d_head_weight = gradients ? gradients + layout_.head_weight : nullptr,
       .loss_sum = work_.report.loss_sum(pass.report),
       .is_greedy = gradients ? nullptr : work_.is_greedy.data(),
       .chunk_tokens = work_.head_chunk,
       .logits = work_.logits.data(),
       .d_logits = work_.d_logits.data()},
      queue_);
}

void BackendModel::RecomputeLayer(const Pass& pass, int64_t layer) {
  switch (work_.recompute()) {
    case Recompute::kNone:
      return;
    case Recompute::kLayer:
      AttentionBlockForward(pass, layer);
      RecomputeRouterInput(pass, layer);
      [[fallthrough]];
    case Recompute::kExperts:
      RecomputeExperts(pass, layer);
  }
}

void BackendModel::StartReports(int64_t num_groups) {
  BeginOperation("report");
  work_.report.StartFetch(queue_, num_groups);
}

void BackendModel::CheckScores(int64_t group) const {
  const int64_t num_experts = config_.model.num_experts;
  const int64_t length = groups_[group].sequence_length;
  for (int64_t l = 0; l < config_.model.num_layers; ++l) {
    const HostLayerReport layer = work_.report.FetchedLayer(group, l);
    if (*layer.bad_score < 0) continue;
    const int64_t token = *layer.bad_score / num_experts;
    ThrowDiverged("layer " + std::to_string(l) + ", token " +
                  std::to_string(groups_[group].first_token + token) +
                  " (sequence " + std::to_string(token / length) +
                  " of its group, position " + std::to_string(token % length) +
                  "), expert " +
                  std::to_string(*layer.bad_score % num_experts) +
                  ": router score is " + std::to_string(*layer.bad_value));
  }
}

StepStats BackendModel::ReadReport(int64_t group) const {
  CheckScores(group);
  StepStats stats = work_.report.Read(group, groups_[group].num_tokens);
  if (!std::isfinite(stats.loss_sum)) {
    ThrowDiverged("the loss is " + std::to_string(stats.loss_sum));
  }
  return stats;
}

StepStats BackendModel::Forward(const Batch& batch,
                                const RoutingState& routing) {
  StartGroups(routing);
  const Pass pass = Begin(batch, 0.0, 0);
  ForwardLayers(pass);
  Head(pass, 0.0, nullptr);
  StartReports(1);
  Finish(queue_);
  return ReadReport(0);
}

StepStats BackendModel::ForwardBackward(const Batch& batch,
                                        const RoutingState& routing,
                                        double loss_scale, double group_scale,
                                        std::span<float> gradients) {
  SOFTMOE_CHECK(static_cast<int64_t>(gradients.size()) == layout_.total)
      << gradients.size() << " of " << layout_.total << " gradients";
  float* target = OutputOnBackend(queue_, gradients, &gradients_);
  StartGroups(routing);
  StartGradients(batch, loss_scale, group_scale, 0, target);
  StartReports(1);
  ReadArray<float>(queue_, target, gradients);
  return ReadReport(0);
}

void BackendModel::StartGradients(const Batch& batch, double loss_scale,
                                  double group_scale, int64_t group,
                                  float* gradients, const DownTo& down_to) {
  const ModelConfig& m = config_.model;
  const Pass pass = Begin(batch, group_scale, group);
  // On a device, attention's backward scratch is sized for full sequences.
  SOFTMOE_CHECK(kMemory == MemoryKind::kHost ||
                pass.sequence_length == m.sequence_length)
      << "gradients of sequences of " << pass.sequence_length
      << " on a device, in a model for " << m.sequence_length;
  ForwardLayers(pass);
  Head(pass, loss_scale, gradients);

  // The norm adds to the gradient of the residual stream, which starts here.
  BeginOperation("clear", MoveWork(1, pass.num_tokens * m.d_model));
  ClearArray(queue_, pass.num_tokens * m.d_model, work_.d_residual.data());
  NormBackward(pass, pass.fp32 + pass.fp32_layout.final_norm,
               work_.final_residual, work_.final_rstd,
               gradients + layout_.final_norm);
  down_to(layout_.final_norm);
  for (int64_t l = m.num_layers - 1; l >= 0; --l) {
    // The last layer's activations are still there: nothing to recompute.
    if (l + 1 < m.num_layers) RecomputeLayer(pass, l);
    MoeBlockBackward(pass, l, allocations_[l], gradients);
    AttentionBlockBackward(pass, l, gradients);
    down_to(layout_.layers[l].attention_norm);
  }
  BeginOperation("embedding, backward",
                 MoveWork(1, pass.num_tokens * m.d_model) +
                     MoveWork<float>(1, m.vocab_size * m.d_model));
  ops::EmbeddingBackward({.num_tokens = pass.num_tokens,
                          .d_model = m.d_model,
                          .vocab_size = m.vocab_size,
                          .ids = pass.inputs,
                          .d_out = work_.d_residual.data(),
                          .d_table = gradients + layout_.embedding,
                          .scratch = work_.embedding_scratch.data()},
                         queue_);
  if (!budget_logits_.empty()) {
    ops::BudgetGradient({.num_layers = m.num_layers,
                         .spare_budget = SpareBudget(config_),
                         .shares = shares_,
                         .d_mean_active = work_.report.d_mean_active(group),
                         .d_budget_logits = gradients + layout_.budget_logits},
                        queue_);
  }
  down_to(0);
}

std::vector<float> BackendModel::CollectSoftWeightRatios(
    const Batch& batch, const RoutingState& routing) {
  SOFTMOE_CHECK(TraitsOf(config_).cutoff) << "tau is for soft routers";
  RoutingState unfiltered = routing;
  unfiltered.tau = 0;
  StartGroups(unfiltered);
  const Pass pass = Begin(batch, 0.0, 0);
  ForwardLayers(pass);
  StartReports(1);
  std::vector<FetchedArray<float>> gates(work_.shares.size());
  for (size_t l = 0; l < gates.size(); ++l) {
    const RoutedShare& share = work_.shares[l];
    gates[l].Start(queue_, share.gates, pass.num_tokens * share.max_active);
  }
  Finish(queue_);
  CheckScores(0);
  std::vector<float> ratios;
  for (size_t l = 0; l < gates.size(); ++l) {
    // A weight that underflowed to 0 is not selected: its gate is 0 as well.
    const double uniform = allocations_[l].mean_active /
                           static_cast<double>(config_.model.num_experts);
    for (const float gate : gates[l].view()) {
      ratios.push_back(static_cast<float>(gate / uniform));
    }
  }
  return ratios;
}

std::span<const float> BackendModel::LastTokenLosses() {
  token_losses_.Start(queue_, work_.token_loss.data(),
                      groups_[last_group_].num_tokens);
  Finish(queue_);
  return token_losses_.view();
}

std::span<const int32_t> BackendModel::LastTokensGreedy() {
  tokens_greedy_.Start(queue_, work_.is_greedy.data(),
                       groups_[last_group_].num_tokens);
  Finish(queue_);
  return tokens_greedy_.view();
}

RoutingView BackendModel::LastRouting(int64_t layer) {
  const LayerActivations& acts = work_.layers[layer];
  const RoutedShare& share = work_.shares[layer];
  RoutingCopy& copy = routing_copies_[layer];
  const int64_t num_tokens = groups_[last_group_].num_tokens;
  const int64_t pairs = num_tokens * config_.model.num_experts;
  copy.scores.Start(queue_, acts.scores.data(), pairs);
  copy.soft_weights.Start(queue_, acts.soft_weights.data(), pairs);
  copy.selected.Start(queue_, share.selected, num_tokens * share.max_active);
  Finish(queue_);
  return {.max_active = share.max_active,
          .scores = copy.scores.view(),
          .soft_weights = copy.soft_weights.view(),
          .selected = copy.selected.view(),
          .balance_counts = work_.report.balance_counts(last_group_, layer)};
}

int64_t BackendModel::MemoryBytes() const {
  return parameters_.bytes() + work_.bytes();
}

std::unique_ptr<Updater> BackendModel::MakeUpdater() {
  SOFTMOE_CHECK(!parameters_.shared()) << "a model of one of several ranks";
  RequireMemory(PlanUpdates(config_), FreeBytes());
  return std::make_unique<BackendUpdater>(*this);
}

std::unique_ptr<Updater> BackendModel::MakeUpdater(Communicator& communicator,
                                                   CarrierKind carrier) {
  // Refuses groups that do not divide before planning memory for them.
  (void)GroupsOfRank(NumGroups(config_.training), communicator.size(),
                     communicator.rank());
  SOFTMOE_CHECK(parameters_.shared() || communicator.size() == 1 ||
                kPrecision == Precision::kFp32)
      << "a model that was made without the ranks' communicator";
  RequireMemory(PlanUpdates(config_, communicator.size()), FreeBytes());
  return std::make_unique<RankedUpdater>(*this, communicator, carrier);
}

std::unique_ptr<Model> MakeBackendModel(const Config& config,
                                        int64_t group_sequences, Queue& queue,
                                        Recompute recompute,
                                        Communicator* communicator) {
  MemoryPlan plan =
      PlanModel(config, communicator == nullptr ? 1 : communicator->size());
  plan.Add(PlanPasses(config,
                      SizesOf(InitialAllocations(config, /*tau=*/0),
                              group_sequences * config.model.sequence_length),
                      recompute, kMemory));
  RequireMemory(plan, FreeBytes());
  return std::make_unique<BackendModel>(config, group_sequences, recompute,
                                        queue, communicator);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
