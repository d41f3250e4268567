// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bf16_sizes.h"

#include <string>

#include "core/errors.h"

namespace softmoe::kernels {
namespace {

constexpr int64_t kMultiple = 8;  // elements: 16 bytes

void Check(const std::string& what, int64_t size, const std::string& key) {
  if (size % kMultiple == 0) return;
  throw ConfigError(what + " is " + std::to_string(size) +
                    ", and in bf16 it must be a multiple of " +
                    std::to_string(kMultiple) + ": change " + key +
                    ", or train in fp32");
}

}  // namespace

void CheckBf16Sizes(const Bf16Sizes& sizes) {
  Check("model.d_model", sizes.d_model, "it");
  Check("model.d_model / model.num_heads", sizes.d_model / sizes.num_heads,
        "model.num_heads");
  Check("model.d_ffn", sizes.d_ffn, "it");
  Check("model.vocab_size", sizes.vocab_size, "it");
}

}  // namespace softmoe::kernels
