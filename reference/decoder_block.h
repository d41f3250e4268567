// SPDX-License-Identifier: Apache-2.0
//
// decoder_block.h - one pre-norm decoder layer (reference, double).
//
//   h <- h + Attn(RMSNorm(h)) W_o;   h <- h + MoE(RMSNorm(h))     SPEC.md 3.2
#ifndef SOFTMOE_REFERENCE_DECODER_BLOCK_H_
#define SOFTMOE_REFERENCE_DECODER_BLOCK_H_

#include <cstdint>

#include "reference/attention.h"
#include "reference/matrix.h"
#include "reference/moe_layer.h"
#include "reference/rmsnorm.h"
#include "reference/rope.h"
#include "reference/scalar.h"

namespace softmoe::reference {

struct DecoderBlockSettings {
  int64_t num_sequences = 1;
  int64_t num_heads = 1;
  double rope_base = 10000;
  double norm_epsilon = 1e-5;
  MoeLayerSettings moe;
};

struct DecoderBlockWeights {
  Vector attention_norm;  // [d_model]
  Matrix qkv_weight;      // [d_model, 3*d_model]: all q heads, then k, then v
  Matrix output_weight;   // [d_model, d_model]
  Vector moe_norm;        // [d_model]
  MoeLayerWeights moe;
};

// What the backward pass needs from the forward pass.
struct DecoderBlockSaved {
  Matrix attention_input;  // [num_tokens, d_model], normalised
  Matrix rotated_qkv;      // [num_tokens, 3*d_model]
  Matrix attention_out;    // [num_tokens, d_model], before output_weight
  Matrix middle;           // [num_tokens, d_model], after attention
  Matrix moe_input;        // [num_tokens, d_model], normalised
  MoeLayerSaved moe;
};

struct DecoderBlockResult {
  Matrix out;  // [num_tokens, d_model]
  DecoderBlockSaved saved;
};

// hidden [num_sequences*sequence_length, d_model]; `replay` may be null.
// Errors as MoeLayerForward.
DecoderBlockResult DecoderBlockForward(const DecoderBlockSettings& settings,
                                       const DecoderBlockWeights& weights,
                                       const Matrix& hidden,
                                       const RoutingReplay* replay = nullptr);

struct DecoderBlockGradients {
  Matrix d_hidden;  // [num_tokens, d_model]
  Matrix d_middle;  // [num_tokens, d_model], after attention
  DecoderBlockWeights d_weights;
  double d_mean_active = 0;  // d/d k_l
};

// Gradient of <d_out, out> + auxiliary_scale * (load balance + z loss).
DecoderBlockGradients DecoderBlockBackward(const DecoderBlockSettings& settings,
                                           const DecoderBlockWeights& weights,
                                           const Matrix& hidden,
                                           const DecoderBlockSaved& saved,
                                           const Matrix& d_out,
                                           double auxiliary_scale);

// The attention half over any scalar (scalar.h); the other half is moe_layer.h.
namespace formula {

// h + Attn(RMSNorm(h)) W_o, with its intermediate results.
template <typename N>
struct AttentionHalf {
  MatrixOf<N> input, rotated_qkv, attention_out, middle;

  AttentionHalf(int64_t num_sequences, int64_t num_heads, double rope_base,
                const N& norm_epsilon, const VectorOf<N>& norm,
                const MatrixOf<N>& qkv_weight, const MatrixOf<N>& output_weight,
                const MatrixOf<N>& hidden)
      : input(RmsNormForward<N>(hidden, norm, norm_epsilon)),
        rotated_qkv(RotateQueriesAndKeys<N>(Multiply<N>(input, qkv_weight),
                                            num_sequences, num_heads, rope_base,
                                            1)),
        attention_out(
            MultiHeadAttention<N>(rotated_qkv, num_sequences, num_heads)),
        middle(Plus<N>(hidden, Multiply<N>(attention_out, output_weight))) {}
};

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_DECODER_BLOCK_H_
