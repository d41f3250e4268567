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

// Each table row sums its tokens in ascending token order.
template <typename Activation>
struct EmbeddingBackwardArgsOf {
  int64_t num_tokens, d_model, vocab_size;
  const int32_t* ids;       // [num_tokens]
  const Activation* d_out;  // [num_tokens, d_model]
  float* d_table;           // [vocab_size, d_model], =
  int32_t* scratch;         // [num_tokens + vocab_size + 1], on a device
                            // [EmbeddingDeviceScratch(num_tokens)]
};
using EmbeddingBackwardArgs = EmbeddingBackwardArgsOf<float>;
SOFTMOE_DECLARE_KERNEL(EmbeddingBackward);

// On a device, the sort counts 256 bins in each fixed block of tokens.
inline constexpr int64_t kEmbeddingTokenBlock = 256;
constexpr int64_t EmbeddingDeviceScratch(int64_t num_tokens) {
  const int64_t blocks =
      (num_tokens + kEmbeddingTokenBlock - 1) / kEmbeddingTokenBlock;
  return 2 * num_tokens + (256 + 1) + 256 * blocks;
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_EMBEDDING_H_
