// SPDX-License-Identifier: Apache-2.0
//
// embedding.h - rows of the table by token id, and their gradient.
#ifndef SOFTMOE_KERNELS_EMBEDDING_H_
#define SOFTMOE_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

template <typename Activation>  // float; on a device also Bf16
struct EmbeddingForwardArgsOf {
  int64_t num_tokens, d_model;
  const int32_t* ids;  // [num_tokens], in [0, vocab_size)
  const float* table;  // [vocab_size, d_model]
  Activation* out;     // [num_tokens, d_model]
};
using EmbeddingForwardArgs = EmbeddingForwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(EmbeddingForward);
// The ids, on the host, say how many rows the table has at least.
template <typename Activation, typename F>
void ForEachArray(EmbeddingForwardArgsOf<Activation>& a, const F& f) {
  int32_t last = -1;
  for (int64_t t = 0; t < a.num_tokens; ++t) {
    if (a.ids[t] > last) last = a.ids[t];
  }
  f("ids", a.ids, a.num_tokens);
  f("table", a.table, (last + 1) * a.d_model);
  f("out", a.out, a.num_tokens * a.d_model);
}

// Each table row sums its tokens in ascending token order; on a device, in
// pieces of kEmbeddingPiece that are then added in their order, since some
// words are a tenth of a text.
template <typename Activation>
struct EmbeddingBackwardArgsOf {
  int64_t num_tokens, d_model, vocab_size;
  const int32_t* ids;       // [num_tokens]
  const Activation* d_out;  // [num_tokens, d_model]
  float* d_table;           // [vocab_size, d_model], =
  int32_t* scratch;         // [num_tokens + vocab_size + 1], on a device
                            // [EmbeddingDeviceScratch(num_tokens, d_model)]
};
using EmbeddingBackwardArgs = EmbeddingBackwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(EmbeddingBackward);

inline constexpr int64_t kEmbeddingPiece = 64;  // tokens of one id
// Rows for sums of pieces.
constexpr int64_t EmbeddingPieces(int64_t num_tokens) {
  return 2 * ((num_tokens + kEmbeddingPiece - 1) / kEmbeddingPiece);
}

// On a device, the sort counts 256 bins in each fixed block of tokens. The sums
// come first: their rows begin at multiples of 16 bytes where d_model allows.
inline constexpr int64_t kEmbeddingTokenBlock = 256;
constexpr int64_t EmbeddingDeviceScratch(int64_t num_tokens, int64_t d_model) {
  const int64_t blocks =
      (num_tokens + kEmbeddingTokenBlock - 1) / kEmbeddingTokenBlock;
  return EmbeddingPieces(num_tokens) * d_model + 2 * num_tokens + (256 + 1) +
         256 * blocks;
}
// With the scratch of a device.
template <typename Activation, typename F>
void ForEachArray(EmbeddingBackwardArgsOf<Activation>& a, const F& f) {
  f("ids", a.ids, a.num_tokens);
  f("d_out", a.d_out, a.num_tokens * a.d_model);
  f("d_table", a.d_table, a.vocab_size * a.d_model);
  f("scratch", a.scratch, EmbeddingDeviceScratch(a.num_tokens, a.d_model));
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_EMBEDDING_H_
