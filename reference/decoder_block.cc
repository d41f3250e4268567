// SPDX-License-Identifier: Apache-2.0
#include "reference/decoder_block.h"

#include <utility>

#include "core/errors.h"
#include "reference/attention.h"
#include "reference/rmsnorm.h"
#include "reference/rope.h"

namespace softmoe::reference {
namespace {

void CheckShapes(const DecoderBlockSettings& settings,
                 const DecoderBlockWeights& weights, const Matrix& hidden) {
  const int64_t d_model = hidden.cols();
  SOFTMOE_CHECK(weights.attention_norm.size() == d_model &&
                weights.qkv_weight.cols() == 3 * d_model)
      << "norm [" << weights.attention_norm.size() << "], qkv ["
      << weights.qkv_weight.rows() << ", " << weights.qkv_weight.cols()
      << "] for d_model " << d_model;
  SOFTMOE_CHECK(settings.num_sequences > 0 &&
                hidden.rows() % settings.num_sequences == 0 &&
                settings.num_heads > 0 &&
                d_model % (2 * settings.num_heads) == 0)
      << hidden.rows() << " tokens of " << settings.num_sequences
      << " sequences, d_model " << d_model << ", " << settings.num_heads
      << " heads";
}

}  // namespace

DecoderBlockResult DecoderBlockForward(const DecoderBlockSettings& settings,
                                       const DecoderBlockWeights& weights,
                                       const Matrix& hidden,
                                       const RoutingReplay* replay) {
  CheckShapes(settings, weights, hidden);
  DecoderBlockResult result;
  DecoderBlockSaved& saved = result.saved;
  formula::AttentionHalf<double> half(
      settings.num_sequences, settings.num_heads, settings.rope_base,
      settings.norm_epsilon, weights.attention_norm, weights.qkv_weight,
      weights.output_weight, hidden);
  saved.attention_input = std::move(half.input);
  saved.rotated_qkv = std::move(half.rotated_qkv);
  saved.attention_out = std::move(half.attention_out);
  saved.middle = std::move(half.middle);
  saved.moe_input =
      RmsNormForward(saved.middle, weights.moe_norm, settings.norm_epsilon);
  MoeLayerResult moe =
      MoeLayerForward(settings.moe, weights.moe, saved.moe_input, replay);
  saved.moe = std::move(moe.saved);
  result.out = saved.middle + moe.out;
  return result;
}

DecoderBlockGradients DecoderBlockBackward(const DecoderBlockSettings& settings,
                                           const DecoderBlockWeights& weights,
                                           const Matrix& hidden,
                                           const DecoderBlockSaved& saved,
                                           const Matrix& d_out,
                                           double auxiliary_scale) {
  DecoderBlockGradients gradients;
  // The expert half: out = middle + MoE(RMSNorm(middle)).
  MoeLayerGradients moe =
      MoeLayerBackward(settings.moe, weights.moe, saved.moe_input, saved.moe,
                       d_out, auxiliary_scale);
  const RmsNormGradients moe_norm = RmsNormBackward(
      saved.middle, weights.moe_norm, settings.norm_epsilon, moe.d_hidden);
  const Matrix d_middle = d_out + moe_norm.d_hidden;
  gradients.d_middle = d_middle;

  // The attention half: middle = hidden + Attn(RMSNorm(hidden)) W_o.
  const Matrix d_attention_out =
      Multiply(d_middle, weights.output_weight.transpose());
  const Matrix d_qkv = RopeBackward(
      MultiHeadAttentionBackward(saved.rotated_qkv, settings.num_sequences,
                                 settings.num_heads, d_attention_out),
      settings.num_sequences, settings.num_heads, settings.rope_base);
  const RmsNormGradients attention_norm =
      RmsNormBackward(hidden, weights.attention_norm, settings.norm_epsilon,
                      Multiply(d_qkv, weights.qkv_weight.transpose()));

  gradients.d_hidden = d_middle + attention_norm.d_hidden;
  gradients.d_mean_active = moe.d_mean_active;
  DecoderBlockWeights& d_weights = gradients.d_weights;
  d_weights.attention_norm = attention_norm.d_weight;
  d_weights.qkv_weight = Multiply(saved.attention_input.transpose(), d_qkv);
  d_weights.output_weight = Multiply(saved.attention_out.transpose(), d_middle);
  d_weights.moe_norm = moe_norm.d_weight;
  d_weights.moe = std::move(moe.d_weights);
  return gradients;
}

}  // namespace softmoe::reference
