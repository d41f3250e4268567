// SPDX-License-Identifier: Apache-2.0
//
// parameter_layout.h - where each parameter lives in one flat buffer.
//
// Reference and optimized code, the optimizer and the checkpoint all keep the
// parameters in the same order and shapes, so comparing, saving and updating
// them needs no renaming. No mathematics here: names, shapes, offsets.
//
// Matrices applied from the right are stored [in, out], row-major:
// y = x W. The head is stored like the embedding, logits = h W^T.
#ifndef SOFTMOE_CORE_CONFIG_PARAMETER_LAYOUT_H_
#define SOFTMOE_CORE_CONFIG_PARAMETER_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe {

// How a tensor is initialised (SPEC.md 3.2).
enum class InitKind {
  kNormal,        // N(0, model.init_std^2)
  kScaledNormal,  // N(0, (model.init_std / sqrt(2 num_layers))^2)
  kRouterNormal,  // N(0, router_init_std^2)
  kOnes,
  kZeros,
};

struct ParameterTensor {
  std::string name;            // "layers.3.router_weight"
  std::vector<int64_t> shape;  // row-major
  int64_t offset = 0;          // first element in the flat buffer
  int64_t size = 0;
  InitKind init = InitKind::kNormal;
  bool weight_decay = true;  // false for 1-D tensors (Megatron's rule)
};

// Offsets of one layer's tensors in the flat buffer.
struct LayerOffsets {
  int64_t attention_norm;  // [d_model]
  int64_t qkv_weight;      // [d_model, 3*d_model]: all q heads, k, v
  int64_t output_weight;   // [d_model, d_model]
  int64_t moe_norm;        // [d_model]
  int64_t router_weight;   // [d_model, num_experts]
  int64_t gate_up_weight;  // [num_experts, d_model, 2*d_ffn]: gate, then up
  int64_t down_weight;     // [num_experts, d_ffn, d_model]
};

struct ParameterLayout {
  explicit ParameterLayout(const Config& config);

  std::vector<ParameterTensor> tensors;  // in buffer order
  std::vector<LayerOffsets> layers;
  int64_t embedding = 0;       // [vocab_size, d_model]
  int64_t final_norm = 0;      // [d_model]
  int64_t head_weight = 0;     // [vocab_size, d_model]
  int64_t budget_logits = -1;  // [num_layers]; -1 unless soft_learned
  int64_t total = 0;           // elements in the buffer
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_PARAMETER_LAYOUT_H_
