// SPDX-License-Identifier: Apache-2.0
#include "core/config/parameter_layout.h"

#include <utility>

#include "core/config/router_traits.h"

namespace softmoe {

ParameterLayout::ParameterLayout(const Config& config) {
  const ModelConfig& m = config.model;
  auto add = [this](std::string name, std::vector<int64_t> shape,
                    InitKind init) {
    ParameterTensor tensor;
    tensor.name = std::move(name);
    tensor.offset = total;
    tensor.size = 1;
    for (int64_t extent : shape) tensor.size *= extent;
    tensor.weight_decay = shape.size() > 1;
    tensor.init = init;
    tensor.shape = std::move(shape);
    total += tensor.size;
    tensors.push_back(std::move(tensor));
    return tensors.back().offset;
  };

  embedding = add("embedding", {m.vocab_size, m.d_model}, InitKind::kNormal);
  for (int64_t l = 0; l < m.num_layers; ++l) {
    const std::string prefix = "layers." + std::to_string(l) + ".";
    LayerOffsets layer;
    layer.attention_norm =
        add(prefix + "attention_norm", {m.d_model}, InitKind::kOnes);
    layer.qkv_weight = add(prefix + "qkv_weight", {m.d_model, 3 * m.d_model},
                           InitKind::kNormal);
    layer.output_weight = add(prefix + "output_weight", {m.d_model, m.d_model},
                              InitKind::kScaledNormal);
    layer.moe_norm = add(prefix + "moe_norm", {m.d_model}, InitKind::kOnes);
    layer.router_weight =
        add(prefix + "router_weight", {m.d_model, m.num_experts},
            InitKind::kRouterNormal);
    layer.gate_up_weight =
        add(prefix + "gate_up_weight", {m.num_experts, m.d_model, 2 * m.d_ffn},
            InitKind::kNormal);
    layer.down_weight =
        add(prefix + "down_weight", {m.num_experts, m.d_ffn, m.d_model},
            InitKind::kScaledNormal);
    layers.push_back(layer);
  }
  final_norm = add("final_norm", {m.d_model}, InitKind::kOnes);
  head_weight =
      add("head_weight", {m.vocab_size, m.d_model}, InitKind::kNormal);
  if (TraitsOf(config).learned_budget) {
    budget_logits = add("budget_logits", {m.num_layers}, InitKind::kZeros);
  }
}

}  // namespace softmoe
