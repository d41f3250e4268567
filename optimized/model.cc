// SPDX-License-Identifier: Apache-2.0
#include "optimized/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/errors.h"
#include "core/profile.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/rmsnorm.h"
#include "optimized/attention_block.h"
#include "optimized/diverged.h"
#include "optimized/initialize.h"
#include "optimized/moe_block.h"
#include "optimized/pass.h"
#include "optimized/workspace.h"

namespace softmoe::optimized {
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
  const int64_t token = flat / pass.config.model.num_experts;
  const int64_t length = pass.config.model.sequence_length;
  ThrowDiverged("layer " + std::to_string(layer) + ", token " +
                std::to_string(pass.first_token + token) + " (sequence " +
                std::to_string(token / length) + " of its group, position " +
                std::to_string(token % length) + "), expert " +
                std::to_string(flat % pass.config.model.num_experts) +
                ": router score is " +
                std::to_string(pass.work.layers[layer].scores[flat]));
}

}  // namespace

struct Model::Impl {
  Impl(const Config& config, int64_t group_sequences, ThreadPool& pool)
      : config(config),
        layout(config),
        pool(pool),
        parameters(layout.total),
        work(config, group_sequences * config.model.sequence_length) {
    std::ranges::fill(parameters.span(), 0.0f);
  }

  std::span<const float> BudgetLogits() const {
    if (layout.budget_logits < 0) return {};
    return parameters.span().subspan(
        static_cast<size_t>(layout.budget_logits),
        static_cast<size_t>(config.model.num_layers));
  }

  // Checks `batch`, and of `routing` what a caller can get wrong.
  Pass Begin(const Batch& batch, const RoutingState& routing,
             std::span<const LayerAllocation> allocations, double group_scale);
  // Everything but the head.
  void ForwardLayers(const Pass& pass, const Batch& batch,
                     std::span<const LayerAllocation> allocations);
  // The loss; with `gradients`, also the head's gradient and d_residual.
  void Head(const Pass& pass, const Batch& batch, double loss_scale,
            float* gradients);
  // Throws NumericsError if a score was not finite.
  void CheckScores(const Pass& pass) const;
  // What the pass reports, once scores and loss are known to be finite.
  StepStats Finish(const Pass& pass) const;

  Config config;
  ParameterLayout layout;
  ThreadPool& pool;
  Buffer<float> parameters;
  Workspace work;
  int64_t last_num_tokens = 0;
};

Pass Model::Impl::Begin(const Batch& batch, const RoutingState& routing,
                        std::span<const LayerAllocation> allocations,
                        double group_scale) {
  BeginOperation("checks and budget");
  const ModelConfig& m = config.model;
  const int64_t num_tokens = batch.num_sequences * m.sequence_length;
  SOFTMOE_CHECK(batch.num_sequences > 0 && num_tokens <= work.max_tokens())
      << batch.num_sequences << " sequences in a model made for "
      << work.max_tokens() / m.sequence_length;
  CheckTokens("inputs", batch.inputs, num_tokens, m.vocab_size);
  CheckTokens("targets", batch.targets, num_tokens, m.vocab_size);
  if (config.router.kind != RouterKind::kSparse) {
    SOFTMOE_CHECK(routing.temperature > 0 && std::isfinite(routing.temperature))
        << "temperature=" << routing.temperature;
    SOFTMOE_CHECK(routing.tau >= 0) << "tau=" << routing.tau;
  }
  work.PlaceShares(allocations, num_tokens);
  last_num_tokens = num_tokens;
  return {.config = config,
          .layout = layout,
          .work = work,
          .pool = pool,
          .routing = routing,
          .parameters = parameters.data(),
          .group_scale = group_scale,
          .num_sequences = batch.num_sequences,
          .num_tokens = num_tokens,
          .first_token = batch.first_token};
}

void Model::Impl::ForwardLayers(const Pass& pass, const Batch& batch,
                                std::span<const LayerAllocation> allocations) {
  const ModelConfig& m = config.model;
  BeginOperation("embedding", MoveWork(2, pass.num_tokens * m.d_model));
  kernels::EmbeddingForward({.num_tokens = pass.num_tokens,
                             .d_model = m.d_model,
                             .ids = batch.inputs.data(),
                             .table = parameters.data() + layout.embedding,
                             .out = work.layers[0].residual.data()},
                            pool);
  for (int64_t l = 0; l < m.num_layers; ++l) {
    AttentionBlockForward(pass, l);
    float* out = l + 1 < m.num_layers ? work.layers[l + 1].residual.data()
                                      : work.final_residual.data();
    MoeBlockForward(pass, l, allocations[l], out);
  }
}

void Model::Impl::Head(const Pass& pass, const Batch& batch, double loss_scale,
                       float* gradients) {
  const ModelConfig& m = config.model;
  const int64_t n = pass.num_tokens;
  BeginOperation("norm", MoveWork(2, n * m.d_model));
  kernels::RmsNormForward({.num_tokens = n,
                           .d_model = m.d_model,
                           .epsilon = static_cast<float>(m.norm_epsilon),
                           .x = work.final_residual.data(),
                           .weight = parameters.data() + layout.final_norm,
                           .y = work.final_normed.data(),
                           .rstd = work.final_rstd.data()},
                          pool);
  BeginOperation("head and loss",
                 ProductWork(gradients ? 3 : 1, n, m.vocab_size, m.d_model));
  kernels::HeadCrossEntropy(
      {.num_tokens = n,
       .d_model = m.d_model,
       .vocab_size = m.vocab_size,
       .hidden = work.final_normed.data(),
       .head_weight = parameters.data() + layout.head_weight,
       .targets = batch.targets.data(),
       .token_loss = work.token_loss.data(),
       .grad_scale = static_cast<float>(loss_scale),
       .d_hidden = gradients ? work.d_normed.data() : nullptr,
       .d_head_weight = gradients ? gradients + layout.head_weight : nullptr,
       .loss_sum = work.report.loss_sum()},
      pool);
}

void Model::Impl::CheckScores(const Pass& pass) const {
  for (int64_t l = 0; l < config.model.num_layers; ++l) {
    const int64_t bad_score = *work.report.Layer(l).bad_score;
    if (bad_score >= 0) ThrowBadScore(pass, l, bad_score);
  }
}

StepStats Model::Impl::Finish(const Pass& pass) const {
  BeginOperation("report");
  CheckScores(pass);
  StepStats stats = work.report.Read(pass.num_tokens);
  if (!std::isfinite(stats.loss_sum)) {
    ThrowDiverged("the loss is " + std::to_string(stats.loss_sum));
  }
  return stats;
}

Model::Model(const Config& config, int64_t group_sequences, ThreadPool& pool)
    : impl_(std::make_unique<Impl>(config, group_sequences, pool)) {}

Model::~Model() = default;

const Config& Model::config() const { return impl_->config; }

const ParameterLayout& Model::layout() const { return impl_->layout; }

std::span<float> Model::MutableParameters() { return impl_->parameters.span(); }

std::vector<float> Model::ReadParameters() const {
  const std::span<const float> parameters = impl_->parameters.span();
  return {parameters.begin(), parameters.end()};
}

void Model::WriteParameters(std::span<const float> values, int64_t first) {
  const int64_t size = static_cast<int64_t>(values.size());
  SOFTMOE_CHECK(first >= 0 && size <= impl_->layout.total - first)
      << size << " values from " << first << " on, of " << impl_->layout.total
      << " parameters";
  std::ranges::copy(values, impl_->parameters.data() + first);
}

void Model::InitializeParameters(uint64_t seed) {
  optimized::InitializeParameters(impl_->config.model, impl_->layout, seed,
                                  impl_->parameters.span(), impl_->pool);
}

std::vector<LayerAllocation> Model::Allocations(
    const RoutingState& routing) const {
  return ComputeAllocations(impl_->config, impl_->BudgetLogits(), routing.tau);
}

StepStats Model::Forward(const Batch& batch, const RoutingState& routing) {
  const std::vector<LayerAllocation> allocations = Allocations(routing);
  const Pass pass = impl_->Begin(batch, routing, allocations, 0.0);
  impl_->ForwardLayers(pass, batch, allocations);
  impl_->Head(pass, batch, 0.0, nullptr);
  return impl_->Finish(pass);
}

StepStats Model::ForwardBackward(const Batch& batch,
                                 const RoutingState& routing, double loss_scale,
                                 double group_scale,
                                 std::span<float> gradients) {
  Impl& impl = *impl_;
  const ModelConfig& m = impl.config.model;
  SOFTMOE_CHECK(static_cast<int64_t>(gradients.size()) == impl.layout.total)
      << gradients.size() << " of " << impl.layout.total << " gradients";
  const std::vector<LayerAllocation> allocations = Allocations(routing);
  const Pass pass = impl.Begin(batch, routing, allocations, group_scale);
  impl.ForwardLayers(pass, batch, allocations);
  impl.Head(pass, batch, loss_scale, gradients.data());

  Workspace& work = impl.work;
  // The norm adds to the gradient of the residual stream, which starts here.
  BeginOperation("clear", MoveWork(1, pass.num_tokens * m.d_model));
  std::fill_n(work.d_residual.data(), pass.num_tokens * m.d_model, 0.0f);
  BeginOperation("norm, backward", MoveWork(4, pass.num_tokens * m.d_model));
  kernels::RmsNormBackward(
      {.num_tokens = pass.num_tokens,
       .d_model = m.d_model,
       .x = work.final_residual.data(),
       .weight = impl.parameters.data() + impl.layout.final_norm,
       .rstd = work.final_rstd.data(),
       .d_y = work.d_normed.data(),
       .d_x = work.d_residual.data(),
       .d_weight = gradients.data() + impl.layout.final_norm,
       .scratch = work.norm_scratch.data()},
      impl.pool);
  for (int64_t l = m.num_layers - 1; l >= 0; --l) {
    MoeBlockBackward(pass, l, allocations[l], gradients.data());
    AttentionBlockBackward(pass, l, gradients.data());
  }
  BeginOperation("embedding, backward",
                 MoveWork(1, (pass.num_tokens + m.vocab_size) * m.d_model));
  kernels::EmbeddingBackward(
      {.num_tokens = pass.num_tokens,
       .d_model = m.d_model,
       .vocab_size = m.vocab_size,
       .ids = batch.inputs.data(),
       .d_out = work.d_residual.data(),
       .d_table = gradients.data() + impl.layout.embedding,
       .scratch = work.embedding_scratch.data()},
      impl.pool);
  StepStats stats = impl.Finish(pass);
  if (impl.layout.budget_logits >= 0) {
    BudgetLogitGradient(
        impl.config, impl.BudgetLogits(), work.report.ReadMeanActiveGradients(),
        gradients.subspan(static_cast<size_t>(impl.layout.budget_logits),
                          static_cast<size_t>(m.num_layers)));
  }
  return stats;
}

std::vector<float> Model::CollectSoftWeightRatios(const Batch& batch,
                                                  const RoutingState& routing) {
  Impl& impl = *impl_;
  SOFTMOE_CHECK(impl.config.router.kind != RouterKind::kSparse)
      << "tau is for soft routers";
  RoutingState unfiltered = routing;
  unfiltered.tau = 0;
  const std::vector<LayerAllocation> allocations = Allocations(unfiltered);
  const Pass pass = impl.Begin(batch, unfiltered, allocations, 0.0);
  impl.ForwardLayers(pass, batch, allocations);
  impl.CheckScores(pass);
  std::vector<float> ratios;
  for (int64_t l = 0; l < impl.config.model.num_layers; ++l) {
    // A weight that underflowed to 0 is not selected: its gate is 0 as well.
    const RoutedShare& share = impl.work.shares[l];
    const double uniform = allocations[l].mean_active /
                           static_cast<double>(impl.config.model.num_experts);
    for (int64_t i = 0; i < pass.num_tokens * share.max_active; ++i) {
      ratios.push_back(static_cast<float>(share.gates[i] / uniform));
    }
  }
  return ratios;
}

RoutingView Model::LastRouting(int64_t layer) const {
  const Workspace& work = impl_->work;
  const size_t experts = static_cast<size_t>(impl_->config.model.num_experts);
  const size_t tokens = static_cast<size_t>(impl_->last_num_tokens);
  const RoutedShare& share = work.shares[layer];
  return {.max_active = share.max_active,
          .scores = {work.layers[layer].scores.data(), tokens * experts},
          .soft_weights = {work.layers[layer].soft_weights.data(),
                           tokens * experts},
          .selected = {share.selected,
                       tokens * static_cast<size_t>(share.max_active)},
          .balance_counts = work.report.balance_counts(layer)};
}

int64_t Model::MemoryBytes() const {
  return impl_->parameters.bytes() + impl_->work.bytes();
}

}  // namespace softmoe::optimized
