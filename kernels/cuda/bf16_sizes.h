// SPDX-License-Identifier: Apache-2.0
//
// bf16_sizes.h - which sizes of a model suit products of bf16.
#ifndef SOFTMOE_KERNELS_CUDA_BF16_SIZES_H_
#define SOFTMOE_KERNELS_CUDA_BF16_SIZES_H_

#include <cstdint>

namespace softmoe::kernels {

struct Bf16Sizes {
  int64_t d_model, num_heads, d_ffn, vocab_size;
};

// Throws ConfigError, naming key and remedy, unless all rows of bf16, and those
// of each head, begin on 16 bytes, as matrix units require. (cuBLASLt itself
// accepts all sizes, and leaves these units unused.)
void CheckBf16Sizes(const Bf16Sizes& sizes);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_BF16_SIZES_H_
