// SPDX-License-Identifier: Apache-2.0
#include "core/profile.h"
#include "kernels/attention.h"
#include "optimized/blocks.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

kernels::RopeArgsOf<Activation> Rope(const Pass& pass, Activation* qkv,
                                     bool inverse) {
  const ModelConfig& m = pass.config.model;
  return {.num_sequences = pass.num_sequences,
          .sequence_length = pass.sequence_length,
          .num_heads = m.num_heads,
          .head_dim = m.head_dim(),
          .cosine = pass.work.cosine.data(),
          .sine = pass.work.sine.data(),
          .qkv = qkv,
          .inverse = inverse};
}

}  // namespace

void AttentionBlockForward(const Pass& pass, int64_t layer) {
  const ModelConfig& m = pass.config.model;
  const LayerOffsets& offsets = pass.layout.layers[layer];
  const LayerOffsets& fp32_offsets = pass.fp32_layout.layers[layer];
  const LayerActivations& acts = pass.work.layers[layer];
  const int64_t n = pass.num_tokens, d = m.d_model;

  NormForward(pass, pass.fp32 + fp32_offsets.attention_norm, acts.residual,
              acts.attention_normed, acts.attention_rstd);
  BeginOperation("qkv product", ProductWork(1, n, 3 * d, d));
  Multiply(pass, acts.attention_normed.data(),
           pass.weights + offsets.qkv_weight, acts.qkv.data(),
           {.m = n, .n = 3 * d, .k = d});
  BeginOperation("rope", MoveWork(4, n * d));
  ops::Rope(Rope(pass, acts.qkv.data(), /*inverse=*/false), pass.queue);
  BeginOperation("attention", HeadsWork(2, pass));
  ops::AttentionForward({.num_sequences = pass.num_sequences,
                         .sequence_length = pass.sequence_length,
                         .num_heads = m.num_heads,
                         .head_dim = m.head_dim(),
                         .qkv = acts.qkv.data(),
                         .out = acts.attention_out.data(),
                         .log_sum_exp = acts.log_sum_exp.data(),
                         .query_block = pass.work.query_block,
                         .scratch = pass.work.attention_scratch.data()},
                        pass.queue);
  CopyResidual(pass, acts.residual.data(), acts.moe_residual.data());
  BeginOperation("output product", ProductWork(1, n, d, d));
  Multiply(pass, acts.attention_out.data(),
           pass.weights + offsets.output_weight, acts.moe_residual.data(),
           {.m = n, .n = d, .k = d, .accumulate = true});
}

void AttentionBlockBackward(const Pass& pass, int64_t layer, float* gradients) {
  const ModelConfig& m = pass.config.model;
  const LayerOffsets& offsets = pass.layout.layers[layer];
  const LayerOffsets& fp32_offsets = pass.fp32_layout.layers[layer];
  const LayerActivations& acts = pass.work.layers[layer];
  const Workspace& work = pass.work;
  const int64_t n = pass.num_tokens, d = m.d_model;

  BeginOperation("output product, backward", ProductWork(2, n, d, d));
  // d_output_weight = attention_out^T d_residual
  Multiply(pass, acts.attention_out.data(), work.d_residual.data(),
           gradients + offsets.output_weight,
           {.m = d, .n = d, .k = n, .transpose_a = true});
  // d_attention_out = d_residual output_weight^T
  Multiply(pass, work.d_residual.data(), pass.weights + offsets.output_weight,
           work.d_attention_out.data(),
           {.m = n, .n = d, .k = d, .transpose_b = true});
  BeginOperation("attention, backward", HeadsWork(5, pass));
  ops::AttentionBackward({.num_sequences = pass.num_sequences,
                          .sequence_length = pass.sequence_length,
                          .num_heads = m.num_heads,
                          .head_dim = m.head_dim(),
                          .qkv = acts.qkv.data(),
                          .out = acts.attention_out.data(),
                          .log_sum_exp = acts.log_sum_exp.data(),
                          .d_out = work.d_attention_out.data(),
                          .d_qkv = work.d_qkv.data(),
                          .query_block = work.query_block,
                          .scratch = work.attention_scratch.data()},
                         pass.queue);
  BeginOperation("rope", MoveWork(4, n * d));
  ops::Rope(Rope(pass, work.d_qkv.data(), /*inverse=*/true), pass.queue);
  BeginOperation("qkv product, backward", ProductWork(2, n, 3 * d, d));
  // d_qkv_weight = attention_normed^T d_qkv
  Multiply(pass, acts.attention_normed.data(), work.d_qkv.data(),
           gradients + offsets.qkv_weight,
           {.m = d, .n = 3 * d, .k = n, .transpose_a = true});
  // d_normed = d_qkv qkv_weight^T
  Multiply(pass, work.d_qkv.data(), pass.weights + offsets.qkv_weight,
           work.d_normed.data(),
           {.m = n, .n = d, .k = 3 * d, .transpose_b = true});
  NormBackward(pass, pass.fp32 + fp32_offsets.attention_norm, acts.residual,
               acts.attention_rstd, gradients + offsets.attention_norm);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
