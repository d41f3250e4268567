// SPDX-License-Identifier: Apache-2.0
//
// simulated_model_test.cc tests whether a device takes what was planned.
#include "optimized/memory_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"

namespace softmoe::optimized {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;

// SoftMoE-2 at the paper's sizes: the default, except for the router.
Config PaperConfig() {
  Config config;
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = 2;
  return config;
}

MemoryPlan Plan(const Config& config, Recompute recompute) {
  return PlanStep(config, InitialAllocations(config, 0),
                  config.training.balance_group_sequences, recompute,
                  /*product_workspaces=*/int64_t{160} << 20);
}

TEST(MemoryPlan, AddsUpArraysRoundedUp) {
  MemoryPlan plan;
  plan.Add("a", "x", 1);
  plan.Add("b", "y", 512);
  plan.Add("a", "none", 0);
  plan.Add("a", "x", 513);
  ASSERT_EQ(plan.arrays().size(), 3u);
  EXPECT_EQ(plan.arrays()[2].bytes, 1024);
  EXPECT_EQ(plan.bytes("a"), 512 + 1024);
  EXPECT_EQ(plan.bytes("b"), 512);
  EXPECT_EQ(plan.bytes("c"), 0);
  EXPECT_EQ(plan.bytes(), 2048);
  MemoryPlan twice = plan;
  twice.Add(plan);
  EXPECT_EQ(twice.bytes(), 4096);
  EXPECT_THROW(plan.Add("a", "x", -1), InternalError);
}

TEST(MemoryPlan, ShowsEachPartWithItsLargestArrays) {
  MemoryPlan plan;
  plan.Add("scratch", "small", 1024);
  plan.Add("scratch", "qkv", 2048);
  plan.Add("moments", "first", 512);
  plan.Add("scratch", "qkv", 2048);
  plan.Add("scratch", "b", 512);
  plan.Add("scratch", "c", 512);
  plan.Add("moments", "second", 512);
  plan.Add("moments", "third", 512);
  EXPECT_EQ(plan.Text(),
            "  scratch            6.0 KiB  qkv 4.0 KiB, small 1.0 KiB, b 512 B,"
            " ...\n"
            "  moments            1.5 KiB  first 512 B, second 512 B, third "
            "512 B\n"
            "  total              7.5 KiB\n");
}

// By hand: 6.5 GB for each array as large as the parameters; gate and up of a
// row 20480 bytes; 8 d_model numbers for each token and layer.
TEST(MemoryPlan, OfThePapersWholeStep) {
  const Config config = PaperConfig();
  const int64_t array = 4 * int64_t{1'631'409'290};
  const int64_t tokens = 30 * 2048;
  const MemoryPlan plan = Plan(config, Recompute::kNone);
  const auto expect_bytes = [&](const std::string& part, int64_t bytes) {
    EXPECT_GE(plan.bytes(part), bytes) << part;
    EXPECT_LE(plan.bytes(part), bytes + 1024) << part;
  };
  expect_bytes("parameters", array);
  expect_bytes("moments", 2 * array);
  EXPECT_NEAR(static_cast<double>(plan.bytes("gradients")),
              static_cast<double>(4 * array), 4096);  // 8 groups: a tree of 3
  expect_bytes("routed rows", tokens * 10 * 4 * 2 * 2560 * 4);
  const int64_t layer = tokens * (8 * 640 + 2 + 10) * 4;
  expect_bytes("activations", 10 * layer + tokens * (2 * 640 + 1) * 4);
  expect_bytes("products", int64_t{160} << 20);
  // Cosine and sine for each position and each pair of a head of 64.
  expect_bytes("tables", 2 * int64_t{2048} * (64 / 2) * 4);
  // For each of 8 groups: of each layer, three counts of every expert and three
  // more, and four sums; and the loss.
  EXPECT_EQ(ReportCounts(config.model), 10 * (3 * 32 + 3));
  EXPECT_EQ(ReportSums(config.model), 10 * 4 + 1);
  expect_bytes("reports", 8 * 8 * (990 + 41));
  EXPECT_GT(plan.bytes(), 80 * kGigabyte);
}

// By hand: bf16 halves what products and norms read and write, adds a copy of
// the parameters and, in fp32, what the router reads; everything else stays.
TEST(MemoryPlan, OfThePapersWholeStepInBf16) {
  Config config = PaperConfig();
  const MemoryPlan fp32 = Plan(config, Recompute::kNone);
  config.training.precision = Precision::kBf16;
  const MemoryPlan plan = Plan(config, Recompute::kNone);
  const int64_t parameters = 1'631'409'290;
  const int64_t tokens = 30 * 2048;
  const auto expect_bytes = [&](const std::string& part, int64_t bytes) {
    EXPECT_GE(plan.bytes(part), bytes) << part;
    EXPECT_LE(plan.bytes(part), bytes + 1024) << part;
  };
  expect_bytes("parameters", (4 + 2) * parameters);
  EXPECT_EQ(plan.bytes("moments"), fp32.bytes("moments"));
  EXPECT_EQ(plan.bytes("gradients"), fp32.bytes("gradients"));
  EXPECT_EQ(plan.bytes("routing"), fp32.bytes("routing"));
  EXPECT_EQ(plan.bytes("tables"), fp32.bytes("tables"));
  EXPECT_EQ(2 * plan.bytes("routed rows"), fp32.bytes("routed rows"));
  // Per layer 8 numbers of bf16 and one of fp32 for each of 640; rstd twice and
  // the log-sum-exp of 10 heads.
  const int64_t layer = tokens * (640 * (8 * 2 + 4) + (2 + 10) * 4);
  expect_bytes("activations", 10 * layer + tokens * (2 * 640 * 2 + 4));
  // Loss of each token and whether it is greedy; the logits of 2048 tokens at a
  // time, and their gradients.
  expect_bytes("logits", tokens * (4 + 4) + 2048 * 32768 * (4 + 2));
  const auto scratch = [](const MemoryPlan& of, const std::string& name) {
    int64_t bytes = 0;
    for (const PlannedArray& array : of.arrays()) {
      if (array.part == "scratch" && array.name == name) bytes += array.bytes;
    }
    return bytes;
  };
  for (const char* name : {"row_output", "d_residual", "d_normed", "d_qkv",
                           "d_attention_out", "d_gate_up", "activation"}) {
    EXPECT_EQ(2 * scratch(plan, name), scratch(fp32, name)) << name;
  }
  for (const char* name : {"d_scores", "d_gates", "d_row_gate", "norm",
                           "router", "embedding", "sum_of_squares"}) {
    EXPECT_EQ(scratch(plan, name), scratch(fp32, name)) << name;
  }
  // The sums of 398,294 blocks of the gradient, and theirs.
  EXPECT_EQ(scratch(fp32, "sum_of_squares"), 6224 * 512 + 512);
  EXPECT_EQ(scratch(fp32, "d_router_input"), 0);
  EXPECT_EQ(scratch(plan, "d_router_input"), tokens * 640 * 4);
  // Flash attention: two numbers for each query of ten heads.
  EXPECT_EQ(scratch(plan, "attention"), 4 * 2 * tokens * 10);
}

// By hand: an eighth of the blocks of 4096 of each bucket (parameter_shards.h),
// plus what the last rank has of those that do not divide; the embedding, 21
// norms, 10 routers and 10 budget logits; 2^15 staged parameters.
TEST(MemoryPlan, OfARankInBf16HasAShardOfTheParameters) {
  Config config = PaperConfig();
  const int64_t parameters = 1'631'409'290;
  const auto bytes = [&](int ranks) {
    return PlanModel(config, ranks).bytes("parameters");
  };
  EXPECT_EQ(bytes(8), bytes(1));  // in fp32 they are what is read
  config.training.precision = Precision::kBf16;
  const int64_t shard = 49790 * 4096 + 1162;
  const int64_t read = 32768 * 640 + 21 * 640 + 10 * 640 * 32 + 10;
  const int64_t expected =
      4 * shard + 4 * read + 4 * (int64_t{1} << 15) + 2 * parameters;
  EXPECT_GE(bytes(8), expected);
  EXPECT_LE(bytes(8), expected + 3 * 511);  // rounded up
  EXPECT_EQ(StagedParameters(1000), 1000);
  const auto step = [&](int ranks) {
    return PlanStep(config, InitialAllocations(config, 0), 30, Recompute::kNone,
                    0, ranks)
        .bytes("parameters");
  };
  EXPECT_EQ(step(8), bytes(8));
  EXPECT_EQ(PlanUpdates(config, 8).arrays()[2].name, "sum of a rank");
}

TEST(MemoryPlan, RecomputationKeepsOneLayer) {
  const Config config = PaperConfig();
  const MemoryPlan none = Plan(config, Recompute::kNone);
  const MemoryPlan experts = Plan(config, Recompute::kExperts);
  const MemoryPlan layer = Plan(config, Recompute::kLayer);
  EXPECT_EQ(none.bytes("routed rows"), 10 * experts.bytes("routed rows"));
  EXPECT_EQ(experts.bytes("routed rows"), layer.bytes("routed rows"));
  EXPECT_EQ(none.bytes("activations"), experts.bytes("activations"));
  const int64_t residual = int64_t{30} * 2048 * 640 * 4;
  EXPECT_EQ(experts.bytes("activations") - layer.bytes("activations"),
            9 * (7 * residual + int64_t{30} * 2048 * (2 + 10) * 4));
  for (const char* part : {"parameters", "moments", "gradients", "routing",
                           "scratch", "logits", "reports", "products"}) {
    EXPECT_EQ(none.bytes(part), experts.bytes(part)) << part;
    EXPECT_EQ(none.bytes(part), layer.bytes(part)) << part;
  }
}

TEST(PassSizes, TheLargestHoldAll) {
  Config config = PaperConfig();
  for (const int64_t num_tokens : {1, 127, 128, 300}) {
    const PassSizes largest = LargestSizes(config, num_tokens);
    for (const float logit : {0.0f, 0.5f, 2.0f, 30.0f}) {
      std::vector<float> logits(10);
      logits[3] = logit;
      logits[7] = -logit;
      const auto allocations = ComputeAllocations(config, logits, 1.0);
      const PassSizes sizes = SizesOf(allocations, num_tokens);
      EXPECT_TRUE(largest.Holds(sizes)) << num_tokens << " " << logit;
      EXPECT_TRUE(sizes.Holds(SizesOf(allocations, num_tokens - 1)));
      EXPECT_FALSE(SizesOf(allocations, num_tokens - 1).Holds(sizes));
      for (const LayerAllocation& layer : allocations) {
        EXPECT_GE(sizes.rows, num_tokens * layer.max_active);
      }
    }
  }
  // At most 22 experts in a layer, 50 in all; a share of 127 tokens grows by at
  // most 127 where it is rounded up.
  EXPECT_EQ(LargestSizes(config, 127).pairs, 127 * 50 + 10 * 127);
  EXPECT_EQ(LargestSizes(config, 128).pairs, 128 * 50);
  EXPECT_EQ(LargestSizes(config, 128).rows, 128 * 22);
  const PassSizes sizes = {4, 4, 4};
  EXPECT_TRUE(sizes.Holds(sizes));
  for (const PassSizes& larger :
       {PassSizes{5, 4, 4}, PassSizes{4, 5, 4}, PassSizes{4, 4, 5}}) {
    EXPECT_FALSE(sizes.Holds(larger));
  }
}

// Notes how many bytes each array has, by its name.
class Notes : public ArraySource {
 public:
  int64_t bytes(const std::string& name) const { return bytes_.at(name); }

 private:
  void* TakeBytes(const char*, const char* name, int64_t bytes) override {
    bytes_[name] = bytes;
    return nullptr;
  }
  std::map<std::string, int64_t> bytes_;
};

// Compares exactly, since rounding sizes up would hide a missing element.
TEST(PassArrays, HaveTheScratchThatKernelsAskFor) {
  const Config config = PaperConfig();
  const ModelConfig& m = config.model;
  constexpr int64_t kTokens = 2048;
  constexpr int64_t kInt32 = sizeof(int32_t), kFloat = sizeof(float),
                    kDouble = sizeof(double);
  for (const MemoryKind kind : {MemoryKind::kHost, MemoryKind::kDevice}) {
    Notes notes;
    TakePassArrays<float>(config, LargestSizes(config, kTokens),
                          Recompute::kNone, kind, notes);
    EXPECT_EQ(
        notes.bytes("embedding"),
        kInt32 * (kind == MemoryKind::kDevice
                      ? kernels::EmbeddingDeviceScratch(kTokens, m.d_model)
                      : kTokens + m.vocab_size + 1));
    EXPECT_EQ(notes.bytes("norm"),
              kFloat * kernels::RmsNormScratch(kTokens, m.d_model));
    EXPECT_EQ(notes.bytes("route_plan"),
              kInt32 * kernels::RoutePlanScratch(kTokens, m.num_experts));
    EXPECT_EQ(notes.bytes("router"),
              kDouble * kernels::RouterScratch(kTokens, m.num_experts));
    EXPECT_EQ(notes.bytes("root"), kFloat * 2 * kTokens);
    EXPECT_EQ(notes.bytes("expert_offsets"), kInt32 * 33);
    EXPECT_EQ(notes.bytes("z_sum"), kDouble);
    EXPECT_EQ(notes.bytes("d_qkv"), kFloat * kTokens * 3 * m.d_model);
    EXPECT_EQ(notes.bytes("d_gate_up"), kFloat * 22 * kTokens * 2 * m.d_ffn);
    const int64_t device = kind == MemoryKind::kDevice;
    EXPECT_EQ(notes.bytes("inputs"), device * kInt32 * kTokens);
    EXPECT_EQ(notes.bytes("targets"), device * kInt32 * kTokens);
    EXPECT_EQ(notes.bytes("budget_shares"), device * kDouble * 10);
    EXPECT_EQ(notes.bytes("logits"), device * kFloat * kTokens * m.vocab_size);
    // Scores and weights of 128 queries of one sequence.
    EXPECT_EQ(notes.bytes("attention"), device * kFloat * 2 * 128 * kTokens);
  }
}

TEST(PassArrays, HaveLogitsOf64TokensAtLeast) {
  Config config;
  config.model.vocab_size = 1 << 21;
  EXPECT_EQ(HeadChunk(config, 100, MemoryKind::kDevice), 64);
  EXPECT_EQ(HeadChunk(config, 10, MemoryKind::kDevice), 10);
}

// For each of three sequences of eight tokens: scores of four queries and their
// weights; these in bf16, with eight keys; d_k and d_v of a head.
TEST(PassArrays, HaveScratchForAttentionInBf16) {
  EXPECT_EQ(kernels::AttentionScratchForBf16(3, 8, 2, 16, 4),
            3 * (2 * 4 * 8 + 4 * 8 + 2 * 8 * 16));
  // Flash attention: two numbers for each query of a head, in blocks of 128.
  EXPECT_EQ(kernels::AttentionScratchForBf16(3, 129, 2, 128, 4),
            3 * 2 * 2 * 256);
}

TEST(NumPasses, IsOneAtLeast) {
  EXPECT_EQ(
      NumPasses({.global_batch_sequences = 1, .balance_group_sequences = 2}),
      1);
}

TEST(TreeBuffers, AreAsManyAsTheTreeIsDeep) {
  EXPECT_EQ(TreeBuffers(1), 0);
  EXPECT_EQ(TreeBuffers(2), 1);
  EXPECT_EQ(TreeBuffers(3), 2);
  EXPECT_EQ(TreeBuffers(4), 2);
  EXPECT_EQ(TreeBuffers(8), 3);
}

}  // namespace
}  // namespace softmoe::optimized
