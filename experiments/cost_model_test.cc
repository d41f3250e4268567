// SPDX-License-Identifier: Apache-2.0
#include "experiments/cost_model.h"

#include <gtest/gtest.h>

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
// 58.54528 + 49.152 AE (spec.md 3.1).
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
  EXPECT_EQ(owt.budget_logits, 10);
  config.training.steps = 164'000;
  config.training.global_batch_sequences = 600;
  EXPECT_EQ(EstimateCost(config, 2, Cluster()).tokens, 201'523'200'000);
}

// At 989 TFLOP/s times the MFU, the hours are the FLOPs divided by the rate.
TEST(CostModel, HoursScaleWithTheCluster) {
  const Config config;
  Cluster cluster;
  const RunCost eight = EstimateCost(config, 2, cluster);
  cluster.gpus = 16;
  const RunCost sixteen = EstimateCost(config, 2, cluster);
  EXPECT_DOUBLE_EQ(eight.gpu_hours, sixteen.gpu_hours);
  EXPECT_DOUBLE_EQ(eight.hours, 2 * sixteen.hours);
  EXPECT_DOUBLE_EQ(eight.gpu_hours * 3600 * 989e12 * 0.3, eight.train_flops);
  EXPECT_GT(eight.state_bytes_per_gpu, sixteen.state_bytes_per_gpu);
  EXPECT_DOUBLE_EQ(eight.core_hours * 3600 * 40e9, eight.train_flops);
  // Unsharded: 2 + 4 + 12 bytes for each parameter.
  cluster.sharded_optimizer = false;
  EXPECT_DOUBLE_EQ(EstimateCost(config, 2, cluster).state_bytes_per_gpu,
                   18.0 * 1'631'409'280);
}

}  // namespace
}  // namespace softmoe::experiments
