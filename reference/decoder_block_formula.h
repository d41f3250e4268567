// SPDX-License-Identifier: Apache-2.0
//
// decoder_block_formula.h - the attention half of decoder_block.h over any
// scalar (scalar.h); the other half is moe_layer_formula.h.
#ifndef SOFTMOE_REFERENCE_DECODER_BLOCK_FORMULA_H_
#define SOFTMOE_REFERENCE_DECODER_BLOCK_FORMULA_H_

#include "reference/attention_formula.h"
#include "reference/matrix.h"
#include "reference/rmsnorm_formula.h"
#include "reference/rope_formula.h"
#include "reference/scalar.h"

namespace softmoe::reference::formula {

// h + Attn(RMSNorm(h)) W_o, with what leads to it.
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

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_DECODER_BLOCK_FORMULA_H_
