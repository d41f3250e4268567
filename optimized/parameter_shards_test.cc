// SPDX-License-Identifier: Apache-2.0
#include "optimized/parameter_shards.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe::optimized {
namespace {

// d_model 4, so that sizes by hand are short; offsets, beside them.
Config SmallConfig() {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 4,
                  .num_heads = 1,
                  .d_ffn = 5,
                  .num_experts = 3,
                  .vocab_size = 10,
                  .sequence_length = 6};
  config.router.kind = RouterKind::kSoftLearned;
  return config;
}
// embedding 0, layer 0 at 40, layer 1 at 304, final norm 568, head 572, budget
// logits 612; in a layer: norm 0, qkv 4, output 52, norm 68, router 72, gate and
// up 84, down 204.
constexpr int64_t kTotal = 614;

TEST(Fp32Tensors, ArePackedInTheirOrder) {
  const ParameterLayout layout(SmallConfig());
  ASSERT_EQ(layout.total, kTotal);
  const Fp32Tensors tensors(layout);
  const ParameterLayout& packed = tensors.packed();
  EXPECT_EQ(packed.embedding, 0);
  for (int64_t l = 0; l < 2; ++l) {
    const LayerOffsets& layer = packed.layers[static_cast<size_t>(l)];
    EXPECT_EQ(layer.attention_norm, 40 + 72 * l);
    EXPECT_EQ(layer.moe_norm, 44 + 72 * l);
    EXPECT_EQ(layer.router_weight, 48 + 72 * l);
    for (const int64_t other : {layer.qkv_weight, layer.output_weight,
                                layer.gate_up_weight, layer.down_weight}) {
      EXPECT_EQ(other, -1);
    }
  }
  EXPECT_EQ(packed.final_norm, 184);
  EXPECT_EQ(packed.head_weight, -1);
  EXPECT_EQ(packed.budget_logits, 228);
  EXPECT_EQ(packed.total, 230);
  std::vector<std::string> names;
  for (const ParameterTensor& tensor : packed.tensors) {
    names.push_back(tensor.name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "embedding", "layers.0.attention_norm", "layers.0.moe_norm",
                "layers.0.router_weight", "layers.1.attention_norm",
                "layers.1.moe_norm", "layers.1.router_weight", "final_norm",
                "budget_logits"}));

  Config sparse = SmallConfig();
  sparse.router.kind = RouterKind::kSparse;
  const Fp32Tensors fewer{ParameterLayout(sparse)};
  EXPECT_EQ(fewer.packed().budget_logits, -1);
  EXPECT_EQ(fewer.packed().total, 188);
}

// A product may look at the addresses of its operands, in 256 bytes of 64 floats.
TEST(Fp32Tensors, AreAlignedAsAmongAllParameters) {
  Config config = SmallConfig();
  config.model.num_experts = 7;
  config.model.d_ffn = 11;
  const Fp32Tensors tensors{ParameterLayout(config)};
  for (const auto& piece :
       tensors.PiecesOf({0, ParameterLayout(config).total})) {
    EXPECT_EQ(piece.packed % 64, piece.offset % 64) << piece.offset;
    EXPECT_LE(piece.packed, piece.offset);
  }
}

TEST(Fp32Tensors, AreCutWhereShardsAre) {
  const Fp32Tensors tensors{ParameterLayout(SmallConfig())};
  // From within the embedding to within layer 0's router.
  const auto pieces = tensors.PiecesOf({38, 113});
  ASSERT_EQ(pieces.size(), 4u);
  const int64_t expected[][3] = {
      {38, 38, 2}, {40, 40, 4}, {108, 44, 4}, {112, 48, 1}};
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].offset, expected[i][0]) << i;
    EXPECT_EQ(pieces[i].packed, expected[i][1]) << i;
    EXPECT_EQ(pieces[i].size, expected[i][2]) << i;
  }
  EXPECT_TRUE(tensors.PiecesOf({124, 304}).empty());  // experts of layer 0
  EXPECT_TRUE(tensors.PiecesOf({7, 7}).empty());

  EXPECT_EQ(
      tensors.PackedShards({{0, 38}, {38, 113}, {113, 113}, {113, kTotal}}),
      (Shards{{0, 38}, {38, 49}, {49, 49}, {49, 230}}));
  // The second has those of layer 0; what is left out for alignment comes before.
  EXPECT_EQ(tensors.PackedShards({{0, 40}, {40, 304}, {304, kTotal}}),
            (Shards{{0, 40}, {40, 60}, {60, 230}}));
}

TEST(ParameterShards, AreOfWholeBlocksOfTheNorm) {
  EXPECT_EQ(ParameterShards(3 * 4096 + 5, 2),
            (Shards{{0, 2 * 4096}, {2 * 4096, 3 * 4096 + 5}}));
  EXPECT_EQ(ParameterShards(kTotal, 2), (Shards{{0, 0}, {0, kTotal}}));
}

}  // namespace
}  // namespace softmoe::optimized
