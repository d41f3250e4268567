// SPDX-License-Identifier: Apache-2.0
//
// The layout of the file, on made-up routing; evaluation_test.cc compares real
// traces with what is counted, property_tests with the reference.
#include "trainer/evaluation/routing_trace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

// Two layers, sequences of two tokens, three experts.
Config SmallConfig() {
  Config config;
  config.model.num_layers = 2;
  config.model.num_experts = 3;
  config.model.sequence_length = 2;
  return config;
}

// One sequence: scores from `first` on, soft weights a hundred above.
struct Pass {
  Pass(float first, std::vector<int32_t> list) : selected(std::move(list)) {
    for (int i = 0; i < 6; ++i) {
      scores.push_back(first + static_cast<float>(i));
      soft_weights.push_back(scores.back() + 100);
    }
  }
  optimized::RoutingView view() const {
    return {.max_active = 2,
            .scores = scores,
            .soft_weights = soft_weights,
            .selected = selected,
            .balance_counts = {}};
  }
  std::vector<float> scores, soft_weights;
  std::vector<int32_t> selected;
};

TEST(RoutingTrace, LaysLayersTokensAndExpertsOut) {
  const std::filesystem::path path = FreshFolder("trace") / "trace.h5";
  RoutingTrace trace(SmallConfig(), 2);
  // [token, rank] of experts, then -1.
  const Pass first_0(0, {0, 2, -1, -1}), first_1(12, {1, -1, 0, 1});
  const Pass second_0(6, {2, -1, 0, 2}), second_1(18, {-1, -1, 1, 2});
  TracedModel model{.identity = {}, .step = 7, .tau = 1.8, .temperature = 1};
  model.identity.config = SmallConfig();
  const std::vector<int32_t> tokens = {4, 5, 6, 7}, targets = {5, 6, 7, 8};
  const std::vector<optimized::LayerAllocation> allocations = {
      {1.5, 0.9, 3, 2}, {2.5, 1.5, 2, 3}};
  trace.Add(std::vector{first_0.view(), first_1.view()});
  // A trace that is half full cannot be written.
  EXPECT_THROW(trace.Write(path, model, tokens, targets, allocations),
               InternalError);
  trace.Add(std::vector{second_0.view(), second_1.view()});
  EXPECT_THROW(trace.Add(std::vector{second_0.view(), second_1.view()}),
               InternalError);
  trace.Write(path, model, tokens, targets, allocations);

  const Hdf5Reader file(path, RoutingTraceKind());
  const auto scores = file.ReadDataset<float>("/scores");
  const auto weights = file.ReadDataset<float>("/soft_weights");
  EXPECT_EQ(scores.shape, (std::vector<int64_t>{2, 4, 3}));
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(scores.values[i], static_cast<float>(i));
    EXPECT_EQ(weights.values[i], static_cast<float>(i) + 100);
  }
  EXPECT_EQ(file.ReadDataset<uint8_t>("/active").values,
            (std::vector<uint8_t>{1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1,  //
                                  0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(file.ReadDataset<int32_t>("/tokens").values, tokens);
  EXPECT_EQ(file.ReadDataset<int32_t>("/targets").values, targets);
  EXPECT_EQ(file.ReadDataset<double>("/mean_active").values,
            (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(file.ReadDataset<double>("/cutoff").values,
            (std::vector<double>{0.9, 1.5}));
  EXPECT_EQ(file.ReadDataset<int64_t>("/max_active").values,
            (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(file.ReadInt("/", "step"), 7);
  EXPECT_EQ(file.ReadDouble("/", "tau"), 1.8);

  EXPECT_NO_THROW(RequireReplaceableTrace(path));
  EXPECT_NO_THROW(RequireReplaceableTrace(path.parent_path() / "none"));
  WriteFileAtomically(path, "notes\n");
  EXPECT_EQ(MessageOf<ConfigError>([&] { RequireReplaceableTrace(path); }),
            path.string() +
                ": already exists and is no trace of routers; give "
                "another --out, or move it away");
}

}  // namespace
}  // namespace softmoe::trainer
