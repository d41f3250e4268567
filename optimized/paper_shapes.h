// SPDX-License-Identifier: Apache-2.0
//
// paper_shapes.h - the shapes at which a device is timed: one balance group of
// the paper's model with two active experts, and a step of several groups.
#ifndef SOFTMOE_OPTIMIZED_PAPER_SHAPES_H_
#define SOFTMOE_OPTIMIZED_PAPER_SHAPES_H_

#include <cstdint>
#include <string>

#include "core/config/config.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {

struct Shapes {
  ModelConfig model;  // defaults: the paper's
  int64_t sequences = TrainingConfig{}.balance_group_sequences;
  int64_t groups = TrainingConfig{}.global_batch_sequences / sequences;
  int64_t active = 2;
  // The share of all parameters that one AdamW call and one sum of squares
  // process.
  int64_t parameters = int64_t{100} << 20;
  // For the ceilings: elements to copy, and sides of square products.
  int64_t copied = int64_t{256} << 20, bf16_side = 8192, fp32_side = 4096;
  int64_t workspace = int64_t{32} << 20;  // for products

  int64_t tokens() const { return sequences * model.sequence_length; }
  int64_t routed() const { return tokens() * active; }
  // These two are as for models on a device.
  int64_t query_block() const {
    return QueryBlock(AsConfig(), MemoryKind::kDevice);
  }
  int64_t head_chunk() const {
    return HeadChunk(AsConfig(), tokens(), MemoryKind::kDevice);
  }

 private:
  Config AsConfig() const {
    Config config;
    config.model = model;
    return config;
  }
};

// The paper's shapes; on the simulated device, whose backend is "simulated",
// small versions of them.
inline Shapes ShapesOn(const std::string& backend) {
  if (backend != "simulated") return {};
  return {.model = {.num_layers = 2,
                    .d_model = 16,
                    .num_heads = 2,
                    .d_ffn = 8,
                    .num_experts = 4,
                    .vocab_size = 24,
                    .sequence_length = 8},
          .sequences = 2,
          .groups = 2,
          .parameters = 300,
          .copied = 1000,
          .bf16_side = 16,
          .fp32_side = 16,
          .workspace = 1 << 16};
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PAPER_SHAPES_H_
