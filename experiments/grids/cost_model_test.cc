// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/cost_model.h"

#include <gtest/gtest.h>

#include "core/config/parameter_layout.h"
#include "core/parallel_for.h"
#include "optimized/model.h"

namespace softmoe::experiments {
namespace {

// Counted by hand for L=10, d=640, H=10, F=2560, E=32, V=32768, T=2048:
// 10*8*640^2, 10*4*640*2049/2, 10*2*640*32, 10*2*6*640*2560, 2*640*32768.
TEST(CostModel, ForwardFlopsOfThePaperModel) {
  const ForwardFlops flops = CountForwardFlops(ModelConfig(), 2.0);
  EXPECT_EQ(flops.attention_projections, 32'768'000);
  EXPECT_EQ(flops.attention, 26'227'200);
  EXPECT_EQ(flops.router, 409'600);
  EXPECT_EQ(flops.experts, 196'608'000);
  EXPECT_EQ(flops.head, 41'943'040);
}

// Paper: Table tab:owt_and_c4_results, column Active-Param; exact law
// 58.54528 + 49.152 AE (SPEC.md 3.1).
TEST(CostModel, ActiveParametersOfThePaperModel) {
  for (int active = 0; active <= 4; ++active) {
    EXPECT_EQ(ActiveParameters(ModelConfig(), active),
              58'545'280 + active * 49'152'000);
  }
}

TEST(CostModel, PaperRunsCountTheirTokens) {
  Config config;  // OWT: 18,000 steps of 240 sequences of 2048
  config.router.kind = RouterKind::kSoftLearned;
  const RunCost owt = EstimateCost(config, 2, Cluster());
  EXPECT_EQ(owt.tokens, 8'847'360'000);
  EXPECT_EQ(owt.parameters, 1'631'409'280 + 10);
  config.training.steps = 164'000;
  config.training.global_batch_sequences = 600;
  EXPECT_EQ(EstimateCost(config, 2, Cluster()).tokens, 201'523'200'000);
}

// In bf16 at 989 TFLOP/s times the MFU, the hours are the FLOPs divided by the
// rate. Twice as many GPUs halve the number without rounding it.
TEST(CostModel, HoursScaleWithTheCluster) {
  Config config;
  config.training.precision = Precision::kBf16;
  Cluster cluster;
  const RunCost eight = EstimateCost(config, 2, cluster);
  cluster.gpus = 16;
  const RunCost sixteen = EstimateCost(config, 2, cluster);
  EXPECT_EQ(eight.gpu_hours, sixteen.gpu_hours);
  EXPECT_EQ(eight.hours, 2 * sixteen.hours);
  EXPECT_EQ(eight.gpu_hours * 3600 * 989e12 * 0.3, eight.train_flops);
  EXPECT_EQ(eight.core_hours * 3600 * 40e9, eight.train_flops);
}

// The products of an H100 in fp32 are not those of its tensor cores in bf16.
TEST(CostModel, HoursAreThoseOfThePrecision) {
  Config config;
  Cluster cluster;
  ASSERT_EQ(config.training.precision, Precision::kFp32);
  const RunCost fp32 = EstimateCost(config, 2, cluster);
  EXPECT_DOUBLE_EQ(fp32.gpu_hours * 3600 * 66.9e12 * 0.3, fp32.train_flops);
  EXPECT_EQ(fp32.hours, fp32.gpu_hours / 8);
  config.training.precision = Precision::kBf16;
  const RunCost bf16 = EstimateCost(config, 2, cluster);
  EXPECT_EQ(bf16.train_flops, fp32.train_flops);
  EXPECT_DOUBLE_EQ(bf16.gpu_hours * 989, fp32.gpu_hours * 66.9);
  cluster.fp32_peak_flops *= 2;
  EXPECT_EQ(EstimateCost(config, 2, cluster).gpu_hours, bf16.gpu_hours);
  cluster.peak_flops *= 2;
  EXPECT_EQ(EstimateCost(config, 2, cluster).gpu_hours, bf16.gpu_hours / 2);
}

// A model small enough to count every one of its multiply-adds by hand.
Config Tiny() {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 8,
                  .num_heads = 2,
                  .d_ffn = 4,
                  .num_experts = 3,
                  .vocab_size = 10,
                  .sequence_length = 4};
  config.router.kind = RouterKind::kSoftFixed;
  config.router.mean_active_experts = 1.5;
  config.router.expansion_factor = 2;  // cap 3
  config.training.steps = 5;
  config.training.global_batch_sequences = 6;
  config.training.micro_batch_sequences = 3;
  config.training.balance_group_sequences = 3;
  return config;
}

// A forward pass over one sequence as loops, one multiply-add at a time.
double CountedFlopsOfOneSequence(const ModelConfig& m, double active_experts) {
  double multiply_adds = 0;
  const int64_t d = m.d_model, head = d / m.num_heads;
  for (int64_t position = 0; position < m.sequence_length; ++position) {
    for (int64_t layer = 0; layer < m.num_layers; ++layer) {
      for (int64_t out = 0; out < 3 * d; ++out) multiply_adds += d;  // q, k, v
      for (int64_t h = 0; h < m.num_heads; ++h) {
        for (int64_t key = 0; key <= position; ++key) {
          multiply_adds += head;  // score
          multiply_adds += head;  // weighted sum of values
        }
      }
      for (int64_t out = 0; out < d; ++out) multiply_adds += d;  // output
      for (int64_t e = 0; e < m.num_experts; ++e) multiply_adds += d;
      double expert = 0;
      for (int64_t f = 0; f < m.d_ffn; ++f) expert += d + d;    // gate, up
      for (int64_t out = 0; out < d; ++out) expert += m.d_ffn;  // down
      multiply_adds += active_experts * expert;
    }
    for (int64_t token = 0; token < m.vocab_size; ++token) multiply_adds += d;
  }
  return 2 * multiply_adds;
}

TEST(CostModel, FlopsAreThoseOfTheLoops) {
  const ModelConfig m = Tiny().model;
  const double loops = CountedFlopsOfOneSequence(m, 1.5);
  // By hand: per token 2 (192 + 64 + 24 + 144) 2 = 1696 and 160 of the head;
  // per sequence and layer 10 pairs of 16 multiply-adds, so 640.
  EXPECT_EQ(loops, 4 * (1696 + 160) + 640);
  EXPECT_EQ(4 * CountForwardFlops(m, 1.5).total(), loops);
  const RunCost cost = EstimateCost(Tiny(), 1.5, Cluster());
  EXPECT_EQ(cost.tokens, 5 * 6 * 4);
  // One forward pass; the backward pass costs twice that.
  EXPECT_EQ(cost.train_flops, 3 * loops * 5 * 6);
  EXPECT_EQ(CountedFlopsOfOneSequence(ModelConfig(), 2) / 2048,
            CountForwardFlops(ModelConfig(), 2).total());
}

// Embeddings and the last norm have 2 * 10 * 8 + 8; each layer has 16 in norms,
// 256 in attention, 24 in the router, and 96 in each expert.
TEST(CostModel, ParametersOfASmallModel) {
  EXPECT_EQ(EstimateCost(Tiny(), 1.5, Cluster()).parameters,
            168 + 2 * (16 + 256 + 24 + 3 * 96));
  EXPECT_EQ(ActiveParameters(Tiny().model, 1.5),
            168 + 2 * (16 + 256 + 24 + 1.5 * 96));
  EXPECT_EQ(ActiveParameters(Tiny().model, 3),
            static_cast<double>(EstimateCost(Tiny(), 1, Cluster()).parameters));
}

// Compared with what the model itself reserves. Per token, the estimate omits 5
// numbers per layer and 7 per active expert, where it counts 8 d_model and 2
// d_ffn; with the sums of the router's blocks, that is less than 3 % here.
TEST(CostModel, CpuMemoryIsWhatTheModelReserves) {
  ThreadPool pool(1);
  for (const bool jitter : {false, true}) {
    Config config;
    config.model = {.num_layers = 3,
                    .d_model = 128,
                    .num_heads = 4,
                    .d_ffn = 256,
                    .num_experts = 8,
                    .vocab_size = 512,
                    .sequence_length = 64};
    config.router.kind = RouterKind::kSoftLearned;
    config.router.mean_active_experts = 1.5;
    if (jitter) config.router.noise = NoiseKind::kInputJitter;
    config.training.balance_group_sequences = 16;
    const auto model = optimized::MakeModel(config, 16, pool);
    const double reserved = static_cast<double>(
        model->MemoryBytes() - 4 * ParameterLayout(config).total);
    EXPECT_LE(CpuActivationBytes(config), reserved);
    EXPECT_GE(CpuActivationBytes(config), 0.97 * reserved);
  }
}

}  // namespace
}  // namespace softmoe::experiments
