// SPDX-License-Identifier: Apache-2.0
#include "optimized/backend_model.h"

#include <cmath>
#include <string>

#include "core/errors.h"
#include "core/profile.h"
#include "optimized/attention_block.h"
#include "optimized/backend_updater.h"
#include "optimized/diverged.h"
#include "optimized/moe_block.h"

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

[[noreturn]] void ThrowBadScore(const Pass& pass, int64_t layer, int64_t flat) {
  float score = 0;
  ReadArray<float>(pass.queue, pass.work.layers[layer].scores.data() + flat,
                   {&score, 1});
  const int64_t token = flat / pass.config.model.num_experts;
  const int64_t length = pass.config.model.sequence_length;
  ThrowDiverged("layer " + std::to_string(layer) + ", token " +
                std::to_string(pass.first_token + token) + " (sequence " +
                std::to_string(token / length) + " of its group, position " +
                std::to_string(token % length) + "), expert " +
                std::to_string(flat % pass.config.model.num_experts) +
                ": router score is " + std::to_string(score));
}

}  // namespace

BackendModel::BackendModel(const Config& config, int64_t group_sequences,
                           Queue& queue)
    : config_(config),
      layout_(config),
      queue_(queue),
      parameters_(layout_.total),
      work_(config, group_sequences * config.model.sequence_length, queue),
      routing_copies_(static_cast<size_t>(config.model.num_layers)) {
  ClearArray(queue, layout_.total, parameters_.data());
}

std::vector<float> BackendModel::ReadParameters() const {
  std::vector<float> values(static_cast<size_t>(layout_.total));
  ReadArray<float>(queue_, parameters_.data(), values);
  return values;
}

void BackendModel::WriteParameters(std::span<const float> values,
                                   int64_t first) {
  const int64_t size = static_cast<int64_t>(values.size());
  SOFTMOE_CHECK(first >= 0 && size <= layout_.total - first)
      << size << " values from " << first << " on, of " << layout_.total
      << " parameters";
  WriteArray(queue_, values, parameters_.data() + first);
}

std::vector<float> BackendModel::BudgetLogits() const {
  if (layout_.budget_logits < 0) return {};
  std::vector<float> logits(static_cast<size_t>(config_.model.num_layers));
  ReadArray<float>(queue_, parameters_.data() + layout_.budget_logits, logits);
  return logits;
}

std::vector<LayerAllocation> BackendModel::Allocations(
    const RoutingState& routing) const {
  return ComputeAllocations(config_, BudgetLogits(), routing.tau);
}

Pass BackendModel::Begin(const Batch& batch, const RoutingState& routing,
                         std::span<const LayerAllocation> allocations,
                         double group_scale) {
  BeginOperation("checks and budget");
  const ModelConfig& m = config_.model;
  const int64_t num_tokens = batch.num_sequences * m.sequence_length;
  SOFTMOE_CHECK(batch.num_sequences > 0 && num_tokens <= work_.max_tokens())
      << batch.num_sequences << " sequences in a model made for "
      << work_.max_tokens() / m.sequence_length;
  CheckTokens("inputs", batch.inputs, num_tokens, m.vocab_size);
  CheckTokens("targets", batch.targets, num_tokens, m.vocab_size);
  if (config_.router.kind != RouterKind::kSparse) {
    SOFTMOE_CHECK(routing.temperature > 0 && std::isfinite(routing.temperature))
        << "temperature=" << routing.temperature;
    SOFTMOE_CHECK(routing.tau >= 0) << "tau=" << routing.tau;
  }
  work_.PlaceShares(allocations, num_tokens);
  last_num_tokens_ = num_tokens;
  return {.config = config_,
          .layout = layout_,
          .work = work_,
          .queue = queue_,
          .routing = routing,
          .parameters = parameters_.data(),
          .inputs = OnBackend(queue_, batch.inputs, &work_.inputs),
          .targets = OnBackend(queue_, batch.targets, &work_.targets),
          .group_scale = group_scale,
          .num_sequences = batch.num_sequences,
          .num_tokens = num_tokens,
          .first_token = batch.first_token};
}

void BackendModel::ForwardLayers(const Pass& pass,
                                 std::span<const LayerAllocation> allocations) {
  const ModelConfig& m = config_.model;
  BeginOperation("embedding", MoveWork(2, pass.num_tokens * m.d_model));
  ops::EmbeddingForward({.num_tokens = pass.num_tokens,
                         .d_model = m.d_model,
                         .ids = pass.inputs,
                         .table = parameters_.data() + layout_.embedding,
                         .out = work_.layers[0].residual.data()},
                        queue_);
  for (int64_t l = 0; l < m.num_layers; ++l) {
    AttentionBlockForward(pass, l);
    float* out = l + 1 < m.num_layers ? work_.layers[l + 1].residual.data()
                                      : work_.final_residual.data();
    MoeBlockForward(pass, l, allocations[l], out);
  }
}

void BackendModel::Head(const Pass& pass, double loss_scale, float* gradients) {
  const ModelConfig& m = config_.model;
  const int64_t n = pass.num_tokens;
  BeginOperation("norm", MoveWork(2, n * m.d_model));
  ops::RmsNormForward({.num_tokens = n,
                       .d_model = m.d_model,
                       .epsilon = static_cast<float>(m.norm_epsilon),
                       .x = work_.final_residual.data(),
                       .weight = parameters_.data() + layout_.final_norm,
                       .y = work_.final_normed.data(),
                       .rstd = work_.final_rstd.data()},
                      queue_);
  BeginOperation("head and loss",
                 ProductWork(gradients ? 3 : 1, n, m.vocab_size, m.d_model));
  ops::HeadCrossEntropy(
      {.num_tokens = n,
       .d_model = m.d_model,
       .vocab_size = m.vocab_size,
       .hidden = work_.final_normed.data(),
       .head_weight = parameters_.data() + layout_.head_weight,
       .targets = pass.targets,
       .token_loss = work_.token_loss.data(),
       .grad_scale = static_cast<float>(loss_scale),
       .d_hidden = gradients ? work_.d_normed.data() : nullptr,
       .d_head_weight = gradients ? gradients + layout_.head_weight : nullptr,
       .loss_sum = work_.report.loss_sum(),
       .chunk_tokens = work_.head_chunk,
       .logits = work_.logits.data()},
      queue_);
}

void BackendModel::FetchReport(const Pass& pass) {
  BeginOperation("report");
  work_.report.Fetch(queue_);
  for (int64_t l = 0; l < config_.model.num_layers; ++l) {
    const int64_t bad_score = *work_.report.FetchedLayer(l).bad_score;
    if (bad_score >= 0) ThrowBadScore(pass, l, bad_score);
  }
}

StepStats BackendModel::Finish(const Pass& pass) {
  FetchReport(pass);
  StepStats stats = work_.report.Read(pass.num_tokens);
  if (!std::isfinite(stats.loss_sum)) {
    ThrowDiverged("the loss is " + std::to_string(stats.loss_sum));
  }
  return stats;
}

StepStats BackendModel::Forward(const Batch& batch,
                                const RoutingState& routing) {
  const std::vector<LayerAllocation> allocations = Allocations(routing);
  const Pass pass = Begin(batch, routing, allocations, 0.0);
  ForwardLayers(pass, allocations);
  Head(pass, 0.0, nullptr);
  return Finish(pass);
}

StepStats BackendModel::ForwardBackward(const Batch& batch,
                                        const RoutingState& routing,
                                        double loss_scale, double group_scale,
                                        std::span<float> gradients) {
  SOFTMOE_CHECK(static_cast<int64_t>(gradients.size()) == layout_.total)
      << gradients.size() << " of " << layout_.total << " gradients";
  float* target = OutputOnBackend(queue_, gradients, &gradients_);
  StepStats stats =
      ComputeGradients(batch, routing, loss_scale, group_scale, target);
  ReadArray<float>(queue_, target, gradients);
  return stats;
}

StepStats BackendModel::ComputeGradients(const Batch& batch,
                                         const RoutingState& routing,
                                         double loss_scale, double group_scale,
                                         float* gradients) {
  const ModelConfig& m = config_.model;
  const std::vector<LayerAllocation> allocations = Allocations(routing);
  const Pass pass = Begin(batch, routing, allocations, group_scale);
  ForwardLayers(pass, allocations);
  Head(pass, loss_scale, gradients);

  // The norm adds to the gradient of the residual stream, which starts here.
  BeginOperation("clear", MoveWork(1, pass.num_tokens * m.d_model));
  ClearArray(queue_, pass.num_tokens * m.d_model, work_.d_residual.data());
  BeginOperation("norm, backward", MoveWork(4, pass.num_tokens * m.d_model));
  ops::RmsNormBackward({.num_tokens = pass.num_tokens,
                        .d_model = m.d_model,
                        .x = work_.final_residual.data(),
                        .weight = parameters_.data() + layout_.final_norm,
                        .rstd = work_.final_rstd.data(),
                        .d_y = work_.d_normed.data(),
                        .d_x = work_.d_residual.data(),
                        .d_weight = gradients + layout_.final_norm,
                        .scratch = work_.norm_scratch.data()},
                       queue_);
  for (int64_t l = m.num_layers - 1; l >= 0; --l) {
    MoeBlockBackward(pass, l, allocations[l], gradients);
    AttentionBlockBackward(pass, l, gradients);
  }
  BeginOperation("embedding, backward",
                 MoveWork(1, (pass.num_tokens + m.vocab_size) * m.d_model));
  ops::EmbeddingBackward({.num_tokens = pass.num_tokens,
                          .d_model = m.d_model,
                          .vocab_size = m.vocab_size,
                          .ids = pass.inputs,
                          .d_out = work_.d_residual.data(),
                          .d_table = gradients + layout_.embedding,
                          .scratch = work_.embedding_scratch.data()},
                         queue_);
  StepStats stats = Finish(pass);
  if (layout_.budget_logits >= 0) {
    std::vector<float> d_logits(static_cast<size_t>(m.num_layers));
    BudgetLogitGradient(config_, BudgetLogits(),
                        work_.report.ReadMeanActiveGradients(), d_logits);
    WriteArray<float>(queue_, d_logits, gradients + layout_.budget_logits);
  }
  return stats;
}

std::vector<float> BackendModel::CollectSoftWeightRatios(
    const Batch& batch, const RoutingState& routing) {
  SOFTMOE_CHECK(config_.router.kind != RouterKind::kSparse)
      << "tau is for soft routers";
  RoutingState unfiltered = routing;
  unfiltered.tau = 0;
  const std::vector<LayerAllocation> allocations = Allocations(unfiltered);
  const Pass pass = Begin(batch, unfiltered, allocations, 0.0);
  ForwardLayers(pass, allocations);
  FetchReport(pass);
  std::vector<float> ratios;
  for (int64_t l = 0; l < config_.model.num_layers; ++l) {
    // A weight that underflowed to 0 is not selected: its gate is 0 as well.
    const RoutedShare& share = work_.shares[l];
    const double uniform = allocations[l].mean_active /
                           static_cast<double>(config_.model.num_experts);
    std::vector<float> copy;
    for (const float gate : OnHost(queue_, share.gates,
                                   pass.num_tokens * share.max_active, &copy)) {
      ratios.push_back(static_cast<float>(gate / uniform));
    }
  }
  return ratios;
}

RoutingView BackendModel::LastRouting(int64_t layer) {
  const LayerActivations& acts = work_.layers[layer];
  const RoutedShare& share = work_.shares[layer];
  RoutingCopy& copy = routing_copies_[layer];
  const int64_t pairs = last_num_tokens_ * config_.model.num_experts;
  return {
      .max_active = share.max_active,
      .scores = OnHost(queue_, acts.scores.data(), pairs, &copy.scores),
      .soft_weights =
          OnHost(queue_, acts.soft_weights.data(), pairs, &copy.soft_weights),
      .selected = OnHost(queue_, share.selected,
                         last_num_tokens_ * share.max_active, &copy.selected),
      .balance_counts = work_.report.balance_counts(layer)};
}

int64_t BackendModel::MemoryBytes() const {
  return parameters_.bytes() + work_.bytes();
}

std::unique_ptr<UpdaterInterface> BackendModel::MakeUpdater() {
  return std::make_unique<BackendUpdater>(*this);
}

std::unique_ptr<ModelInterface> MakeModel(const Config& config,
                                          int64_t group_sequences,
                                          Queue& queue) {
  return std::make_unique<BackendModel>(config, group_sequences, queue);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
