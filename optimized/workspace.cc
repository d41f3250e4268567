// SPDX-License-Identifier: Apache-2.0
#include "optimized/workspace.h"

#include <cmath>

#include "core/errors.h"
#include "kernels/attention.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

bool HasJitter(const Config& config) {
  return config.router.noise == NoiseKind::kInputJitter;
}

// Rotation of pair i at position t: t * base^(-2i/head_dim) (SPEC.md 3.2).
void FillRopeTables(const ModelConfig& model, Queue& queue,
                    Buffer<float>* cosine, Buffer<float>* sine) {
  const int64_t pairs = model.head_dim() / 2;
  std::vector<float> cosines(cosine->size()), sines(sine->size());
  for (int64_t i = 0; i < pairs; ++i) {
    const double frequency =
        std::pow(model.rope_base, -2.0 * static_cast<double>(i) /
                                      static_cast<double>(model.head_dim()));
    for (int64_t t = 0; t < model.sequence_length; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      cosines[t * pairs + i] = static_cast<float>(std::cos(angle));
      sines[t * pairs + i] = static_cast<float>(std::sin(angle));
    }
  }
  WriteArray<float>(queue, cosines, cosine->data());
  WriteArray<float>(queue, sines, sine->data());
}

}  // namespace

LayerActivations::LayerActivations(const Config& config, int64_t num_tokens)
    : residual(num_tokens * config.model.d_model),
      attention_normed(num_tokens * config.model.d_model),
      attention_rstd(num_tokens),
      qkv(num_tokens * 3 * config.model.d_model),
      attention_out(num_tokens * config.model.d_model),
      log_sum_exp(num_tokens * config.model.num_heads),
      moe_residual(num_tokens * config.model.d_model),
      moe_normed(num_tokens * config.model.d_model),
      moe_rstd(num_tokens),
      jittered(HasJitter(config) ? num_tokens * config.model.d_model : 0),
      scores(num_tokens * config.model.num_experts),
      soft_weights(num_tokens * config.model.num_experts),
      root(num_tokens * 2),
      num_active(num_tokens),
      expert_offsets(config.model.num_experts + 1),
      d_probability(config.model.num_experts) {}

Workspace::Workspace(const Config& config, int64_t max_tokens, Queue& queue)
    : report(config.model.num_layers, config.model.num_experts),
      max_tokens_(max_tokens),
      d_ffn_(config.model.d_ffn),
      num_experts_(config.model.num_experts) {
  const ModelConfig& m = config.model;
  const int64_t n = max_tokens, d = m.d_model, f = m.d_ffn, e = m.num_experts;
  layers.reserve(static_cast<size_t>(m.num_layers));
  for (int64_t l = 0; l < m.num_layers; ++l) layers.emplace_back(config, n);
  shares.resize(layers.size());
  host_offsets_.resize(layers.size());

  cosine = Buffer<float>(m.sequence_length * (m.head_dim() / 2));
  sine = Buffer<float>(m.sequence_length * (m.head_dim() / 2));
  FillRopeTables(m, queue, &cosine, &sine);
  final_residual = Buffer<float>(n * d);
  final_normed = Buffer<float>(n * d);
  final_rstd = Buffer<float>(n);
  token_loss = Buffer<float>(n);

  const int64_t pairs = n * LargestTotalActive(config);
  selected_ = Buffer<int32_t>(pairs);
  token_rows_ = Buffer<int32_t>(pairs);
  row_token_ = Buffer<int32_t>(pairs);
  gates_ = Buffer<float>(pairs);
  row_gate_ = Buffer<float>(pairs);
  gate_up_ = Buffer<float>(pairs * 2 * f);

  const int64_t rows = n * LargestMaxActive(config);
  row_output = Buffer<float>(rows * d);
  route_scratch = Buffer<int32_t>(kernels::RoutePlanScratch(n, e));
  router_scratch = Buffer<double>(kernels::RouterScratch(n, e));
  probability_sums = Buffer<double>(e);
  z_sum = Buffer<double>(1);
  d_residual = Buffer<float>(n * d);
  d_normed = Buffer<float>(n * d);
  d_attention_out = Buffer<float>(n * d);
  d_qkv = Buffer<float>(n * 3 * d);
  d_jittered = Buffer<float>(HasJitter(config) ? n * d : 0);
  d_scores = Buffer<float>(n * e);
  d_gates = Buffer<float>(rows);
  d_row_gate = Buffer<float>(rows);
  d_gate_up = Buffer<float>(rows * 2 * f);
  activation = Buffer<float>(rows * f);
  norm_scratch = Buffer<float>(kernels::RmsNormScratch(n, d));
  embedding_scratch = Buffer<int32_t>(EmbeddingScratch(n, m.vocab_size));
  query_block = QueryBlock(m.sequence_length);
  attention_scratch = Buffer<float>(kernels::AttentionScratch(
      n / m.sequence_length, m.sequence_length, query_block));
  head_chunk = HeadChunk(n, m.vocab_size);
  logits = Buffer<float>(head_chunk * m.vocab_size);
}

void Workspace::PlaceShares(std::span<const LayerAllocation> allocations,
                            int64_t num_tokens) {
  SOFTMOE_CHECK(allocations.size() == shares.size());
  int64_t pair = 0;
  for (size_t l = 0; l < shares.size(); ++l) {
    const int64_t max_active = allocations[l].max_active;
    shares[l] = {max_active,
                 selected_.data() + pair,
                 gates_.data() + pair,
                 token_rows_.data() + pair,
                 row_token_.data() + pair,
                 row_gate_.data() + pair,
                 gate_up_.data() + pair * 2 * d_ffn_};
    pair += num_tokens * max_active;
  }
  SOFTMOE_CHECK(num_tokens <= max_tokens_ && pair <= selected_.size())
      << pair << " pairs in a workspace for " << selected_.size();
}

kernels::RoutePlan Workspace::FetchPlan(Queue& queue, int64_t layer,
                                        int64_t num_tokens) {
  host_offsets_[layer].Start(queue, layers[layer].expert_offsets.data(),
                             num_experts_ + 1);
  Finish(queue);
  return Plan(layer, num_tokens);
}

kernels::RoutePlan Workspace::Plan(int64_t layer, int64_t num_tokens) const {
  const RoutedShare& share = shares[layer];
  return {.num_tokens = num_tokens,
          .num_experts = num_experts_,
          .num_routed = host_offsets_[layer].view().back(),
          .max_active = share.max_active,
          .expert_offsets = layers[layer].expert_offsets.data(),
          .row_token = share.row_token,
          .row_gate = share.row_gate,
          .token_rows = share.token_rows};
}

int64_t Workspace::bytes() const {
  int64_t total = 0;
  auto add = [&total](const auto&... buffers) {
    ((total += buffers.bytes()), ...);
  };
  for (const LayerActivations& a : layers) {
    add(a.residual, a.attention_normed, a.attention_rstd, a.qkv,
        a.attention_out, a.log_sum_exp, a.moe_residual, a.moe_normed,
        a.moe_rstd, a.jittered, a.scores, a.soft_weights, a.root, a.num_active,
        a.expert_offsets, a.d_probability);
  }
  add(cosine, sine, final_residual, final_normed, final_rstd, token_loss,
      row_output, route_scratch, router_scratch, probability_sums, z_sum,
      report, d_residual, d_normed, d_attention_out, d_qkv, d_jittered,
      d_scores, d_gates, d_row_gate, d_gate_up, activation, norm_scratch,
      embedding_scratch, attention_scratch, logits);
  add(selected_, token_rows_, row_token_, gates_, row_gate_, gate_up_);
  return total;
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
