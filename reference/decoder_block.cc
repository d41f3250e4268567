// SPDX-License-Identifier: Apache-2.0
#include "reference/decoder_block.h"

#include "reference/attention.h"
#include "reference/rmsnorm.h"
#include "reference/rope.h"

namespace softmoe::reference {

DecoderBlockResult DecoderBlockForward(const DecoderBlockSettings& settings,
                                       const DecoderBlockWeights& weights,
                                       const Matrix& hidden,
                                       const RoutingReplay* replay) {
  DecoderBlockResult result;
  DecoderBlockSaved& saved = result.saved;
  saved.attention_input =
      RmsNormForward(hidden, weights.attention_norm, settings.norm_epsilon);
  saved.rotated_qkv = RopeForward(
      Multiply(saved.attention_input, weights.qkv_weight),
      settings.num_sequences, settings.num_heads, settings.rope_base);
  saved.attention_out = MultiHeadAttention(
      saved.rotated_qkv, settings.num_sequences, settings.num_heads);
  saved.middle = hidden + Multiply(saved.attention_out, weights.output_weight);

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
