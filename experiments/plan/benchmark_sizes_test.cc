// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks claim to time training steps of the smoke, mini and midi
// grids: checks their sizes, and the peer's, against the shipped grids.
#include "core/config/benchmark_sizes.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream in(RunfilePath(path));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(BenchmarkSizes, AreThoseOfTheGrids) {
  for (const BenchmarkSize& size : kBenchmarkSizes) {
    const Grid grid = LoadGrid(
        RunfilePath(fmt::format("experiments/grids/{}.toml", size.name)), {});
    ASSERT_FALSE(grid.runs.empty());
    for (const GridRun& run : grid.runs) {
      const ModelConfig& model = run.config.model;
      EXPECT_EQ(size.num_layers, model.num_layers) << run.id;
      EXPECT_EQ(size.d_model, model.d_model) << run.id;
      EXPECT_EQ(size.num_heads, model.num_heads) << run.id;
      EXPECT_EQ(size.d_ffn, model.d_ffn) << run.id;
      EXPECT_EQ(size.num_experts, model.num_experts) << run.id;
      EXPECT_EQ(size.vocab_size, model.vocab_size) << run.id;
      EXPECT_EQ(size.sequence_length, model.sequence_length) << run.id;
      const TrainingConfig& training = run.config.training;
      // One benchmark step is one update of the run.
      EXPECT_EQ(size.num_sequences, training.global_batch_sequences) << run.id;
      EXPECT_EQ(training.balance_group_sequences,
                size.num_sequences / size.grid_groups)
          << run.id;
    }
  }
}

// compare.py also compares the labels when it runs.
TEST(BenchmarkSizes, AreThoseOfThePeer) {
  const std::string peer = Contents("experiments/peers/pytorch_step.py");
  for (const BenchmarkSize& size : kBenchmarkSizes) {
    const std::string line =
        fmt::format("\"{}\": \"{}\"", size.name, size.Label());
    EXPECT_TRUE(Says(peer, line));
  }
}

}  // namespace
}  // namespace softmoe::experiments
