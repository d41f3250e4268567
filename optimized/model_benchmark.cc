// SPDX-License-Identifier: Apache-2.0
//
// model_benchmark.cc - tokens per second of whole training steps on the CPU:
// forward, backward, clipping and AdamW, with synthetic tokens.
//
//   bench [--isa=v3] [--threads=4] [--benchmark_filter=smoke/sparse2] ...
//
// The peer with the same sizes is experiments/peers/pytorch_step.py.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/philox.h"
#include "kernels/benchmark_options.h"
#include "kernels/benchmark_sizes.h"
#include "optimized/model.h"
#include "optimized/optimizer.h"

namespace softmoe::optimized {
namespace {

using kernels::BenchmarkSize;

ModelConfig ModelOf(const BenchmarkSize& size) {
  return {.num_layers = size.num_layers,
          .d_model = size.d_model,
          .num_heads = size.num_heads,
          .d_ffn = size.d_ffn,
          .num_experts = size.num_experts,
          .vocab_size = size.vocab_size,
          .sequence_length = size.sequence_length};
}

ThreadPool& Pool() {
  static ThreadPool pool(kernels::benchmark_threads);
  return pool;
}

void BM_TrainingStep(benchmark::State& state, const BenchmarkSize& size,
                     RouterKind kind, double mean_active_experts) {
  Config config;
  config.model = ModelOf(size);
  config.router.kind = kind;
  config.router.mean_active_experts = mean_active_experts;
  Model model(config, size.num_sequences, Pool());
  model.InitializeParameters(1);
  Optimizer optimizer(config.training, model.layout(), Pool());

  const int64_t n = size.tokens();
  const RandomKey key{1, RandomStream::kTestData, 0, 0};
  std::vector<int32_t> text;
  for (int64_t t = 0; t <= n; ++t) {
    text.push_back(
        static_cast<int32_t>(PhiloxWords(key, static_cast<uint64_t>(t))[0] %
                             static_cast<uint32_t>(size.vocab_size)));
  }
  const std::span<const int32_t> ids = text;
  const Batch batch = {size.num_sequences, ids.first(n), ids.subspan(1)};
  // A cutoff that leaves about mean_active_experts active.
  const RoutingState routing{.temperature = 1.5, .tau = 1.0};
  std::vector<float> gradients(static_cast<size_t>(model.layout().total));

  double active = 0;
  const auto train = [&](int64_t step) {
    const StepStats stats = model.ForwardBackward(
        batch, routing, 1.0 / static_cast<double>(n), 1.0, gradients);
    // Rate 0 costs the same, and the routing stays as it was initialised.
    optimizer.Update(0.0, step, gradients, model.parameters());
    active = stats.MeanActiveExperts();
  };
  train(0);  // touches all memory
  std::vector<double> seconds;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    train(static_cast<int64_t>(seconds.size()) + 1);
    const std::chrono::duration<double> step =
        std::chrono::steady_clock::now() - begin;
    seconds.push_back(step.count());
  }
  std::ranges::sort(seconds);
  const auto tokens = static_cast<double>(n);
  state.counters["tokens/s"] = tokens / seconds[seconds.size() / 2];
  state.counters["best_tokens/s"] = tokens / seconds.front();
  state.counters["active_experts"] = active;
  state.counters["threads"] = Pool().threads();
  state.SetLabel(size.Label());
}

void Register(const BenchmarkSize& size) {
  struct Row {
    const char* name;
    RouterKind kind;
    double mean_active_experts;
  };
  for (const Row& row : {Row{"sparse1", RouterKind::kSparse, 1},
                         Row{"sparse2", RouterKind::kSparse, 2},
                         Row{"soft_fixed2", RouterKind::kSoftFixed, 2},
                         Row{"soft_learned2", RouterKind::kSoftLearned, 2}}) {
    const std::string name = std::string(size.name) + "/" + row.name;
    benchmark::RegisterBenchmark(name.c_str(), BM_TrainingStep, size, row.kind,
                                 row.mean_active_experts)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
}

const bool registered = [] {
  for (const BenchmarkSize& size : kernels::kBenchmarkSizes) Register(size);
  return true;
}();

}  // namespace
}  // namespace softmoe::optimized
