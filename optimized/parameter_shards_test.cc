// SPDX-License-Identifier: Apache-2.0
#include "optimized/parameter_shards.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"

namespace softmoe::optimized {
namespace {

// d_model 4, so that the sizes and offsets below are short to compute by hand.
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
// logits 612; in a layer: norm 0, qkv 4, output 52, norm 68, router 72, gate
// and up 84, down 204.
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

// A product may look at its operands' addresses, in units of 64 floats.
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
  // The second has those of layer 0, after the gap for alignment.
  EXPECT_EQ(tensors.PackedShards({{0, 40}, {40, 304}, {304, kTotal}}),
            (Shards{{0, 40}, {40, 60}, {60, 230}}));
}

TEST(Fp32Tensors, OfABucketBeginWhereItDoes) {
  const Fp32Tensors tensors{ParameterLayout(SmallConfig())};
  EXPECT_EQ(tensors.PackedShards({{40, 304}, {304, kTotal}}),
            (Shards{{40, 60}, {60, 230}}));
  EXPECT_EQ(tensors.PackedShards({{124, 200}, {200, 304}}),
            (Shards{{0, 0}, {0, 0}}));  // experts
}

// Layers of nearly five blocks.
Config LayersOfBlocks() {
  Config config = SmallConfig();
  config.model = {.num_layers = 2,
                  .d_model = 32,
                  .num_heads = 2,
                  .d_ffn = 40,
                  .num_experts = 4,
                  .vocab_size = 17,
                  .sequence_length = 5};
  return config;
}

// Embedding 0, layer 0 at 544, layer 1 at 20192, final norm 39840, head 39872,
// budget logits 40416, total 40418. Blocks begin at multiples of 4096, and the
// one that has two layers' parameters is in the bucket of the lower.
TEST(ParameterBuckets, AreOfLayersInWholeBlocks) {
  constexpr int64_t kBlock = 4096;
  const ParameterLayout layout(LayersOfBlocks());
  ASSERT_EQ(layout.total, 40418);
  const std::vector<Bucket> buckets = ParameterBuckets(layout, 2);
  ASSERT_EQ(buckets.size(), 4u);
  EXPECT_EQ(buckets[0].shards,
            (Shards{{5 * kBlock, 7 * kBlock}, {7 * kBlock, 9 * kBlock}}));
  EXPECT_EQ(buckets[0].complete_at, 20192);
  EXPECT_EQ(buckets[1].shards,
            (Shards{{kBlock, 3 * kBlock}, {3 * kBlock, 5 * kBlock}}));
  EXPECT_EQ(buckets[1].complete_at, 544);
  EXPECT_EQ(buckets[2].shards, (Shards{{0, 0}, {0, kBlock}}));
  EXPECT_EQ(buckets[2].complete_at, 0);
  // With the budget logits come the ends of the head and of layer 1.
  EXPECT_EQ(buckets[3].shards,
            (Shards{{9 * kBlock, 9 * kBlock}, {9 * kBlock, 40418}}));
  EXPECT_EQ(buckets[3].complete_at, 0);

  EXPECT_EQ(PiecesOfRank(buckets, 1),
            (std::vector<PackedPiece>{{7 * kBlock, 3 * kBlock, 2 * kBlock},
                                      {3 * kBlock, kBlock, 2 * kBlock},
                                      {0, 0, kBlock},
                                      {9 * kBlock, 5 * kBlock, 3554}}));
  EXPECT_EQ(SizeOf(PiecesOfRank(buckets, 0)), 4 * kBlock);
  EXPECT_EQ(LargestPart(buckets), 5 * kBlock + 3554);
  EXPECT_EQ(LargestShard(buckets), 2 * kBlock);
}

TEST(ParameterBuckets, AreOneForASmallModel) {
  const std::vector<Bucket> buckets =
      ParameterBuckets(ParameterLayout(SmallConfig()), 2);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].shards, (Shards{{0, 0}, {0, kTotal}}));
  EXPECT_EQ(buckets[0].complete_at, 0);
}

RC_GTEST_PROP(ParameterBuckets, HaveEveryParameterOnceAndWhenItIsComplete, ()) {
  Config config = LayersOfBlocks();
  config.model.num_layers = *rc::gen::inRange<int64_t>(1, 5);
  config.model.d_model = 2 * *rc::gen::inRange<int64_t>(1, 30);
  config.model.d_ffn = *rc::gen::inRange<int64_t>(1, 60);
  config.model.vocab_size = *rc::gen::inRange<int64_t>(1, 300);
  config.router.kind =
      *rc::gen::element(RouterKind::kSparse, RouterKind::kSoftLearned);
  const auto ranks = *rc::gen::inRange(1, 6);
  const ParameterLayout layout(config);
  const std::vector<Bucket> buckets = ParameterBuckets(layout, ranks);
  Shards all;
  int64_t reached = layout.total;
  for (const Bucket& bucket : buckets) {
    RC_ASSERT(bucket.complete_at <= reached);
    reached = bucket.complete_at;
    RC_ASSERT(bucket.end() > bucket.begin());
    // Backward passes go down the layout, except for the budget logits.
    RC_ASSERT(bucket.begin() >= bucket.complete_at);
    RC_ASSERT(layout.budget_logits < 0 || bucket.complete_at == 0 ||
              bucket.end() <= layout.budget_logits);
    for (const Shard& shard : bucket.shards) {
      RC_ASSERT(shard.begin % 4096 == 0 || shard.begin == layout.total);
      all.push_back(shard);
    }
  }
  std::ranges::sort(all, {}, [](const Shard& shard) {
    return std::pair(shard.begin, shard.end);
  });
  int64_t end = 0;
  for (const Shard& shard : all) {
    RC_ASSERT(shard.begin == end);
    end = shard.end;
  }
  RC_ASSERT(end == layout.total);
}

}  // namespace
}  // namespace softmoe::optimized
