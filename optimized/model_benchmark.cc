// SPDX-License-Identifier: Apache-2.0
//
// model_benchmark.cc - tokens per second of whole training steps on the CPU:
// forward, backward, clipping and AdamW, with synthetic tokens.
//
//   bench [--isa=v3] [--threads=4] [--benchmark_filter=smoke/sparse2] ...
//   bench --profile=midi/sparse2       one step, operation by operation
//   bench --benchmark_filter='^mini/(sparse|random)' --benchmark_repetitions=5
//         --benchmark_format=json      for `grid record mini --bench`
//
// The peer with the same sizes is experiments/peers/pytorch_step.py.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/philox.h"
#include "kernels/benchmark_options.h"
#include "kernels/benchmark_sizes.h"
#include "optimized/model.h"
#include "optimized/step_profile.h"
#include "optimized/updater.h"

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

// A row of the results at one size: "midi/soft_fixed2".
struct Row {
  const char* name;
  RouterKind kind;
  double mean_active_experts;
  // Fixed random routing: a soft router as it was drawn, with the cutoff at
  // which that many experts are active.
  bool exact = false;
};
constexpr Row kRows[] = {{"sparse1", RouterKind::kSparse, 1},
                         {"sparse2", RouterKind::kSparse, 2},
                         {"soft_fixed2", RouterKind::kSoftFixed, 2},
                         {"soft_learned2", RouterKind::kSoftLearned, 2}};
// At the mini size besides: throughput by active experts, a claim of the paper.
constexpr Row kMiniRows[] = {{"random1.5", RouterKind::kSoftFixed, 1.5, true},
                             {"sparse3", RouterKind::kSparse, 3},
                             {"sparse4", RouterKind::kSparse, 4}};

std::vector<Row> RowsOf(const BenchmarkSize& size) {
  std::vector<Row> rows(std::begin(kRows), std::end(kRows));
  if (std::string(size.name) == "mini") {
    rows.insert(rows.end(), std::begin(kMiniRows), std::end(kMiniRows));
  }
  return rows;
}

std::string NameOf(const BenchmarkSize& size, const Row& row) {
  return std::string(size.name) + "/" + row.name;
}

Config ConfigOf(const BenchmarkSize& size, const Row& row) {
  Config config;
  config.model = ModelOf(size);
  config.router.kind = row.kind;
  config.router.mean_active_experts = row.mean_active_experts;
  config.training.global_batch_sequences = size.num_sequences;
  config.training.balance_group_sequences = size.num_sequences;
  return config;
}

// A model that trains on one batch of synthetic tokens.
class Trainee {
 public:
  Trainee(const BenchmarkSize& size, const Row& row, ThreadPool& pool)
      : size_(size),
        model_(ConfigOf(size, row), size.num_sequences, pool),
        updater_(model_) {
    model_.InitializeParameters(1);
    const RandomKey key{1, RandomStream::kTestData, 0, 0};
    for (int64_t t = 0; t <= size.tokens(); ++t) {
      text_.push_back(
          static_cast<int32_t>(PhiloxWords(key, static_cast<uint64_t>(t))[0] %
                               static_cast<uint32_t>(size.vocab_size)));
    }
    if (row.exact) ChooseTau(row.mean_active_experts);
  }

  // One step; returns the mean number of active experts.
  double Step() {
    const UpdateGradient gradient =
        updater_.ComputeGradient(routing_, [&](int64_t) { return Text(); });
    // Rate 0 costs the same, and the routing stays as it was initialised.
    updater_.Apply(0.0, step_++);
    return gradient.groups[0].MeanActiveExperts();
  }

 private:
  Batch Text() const {
    const auto n = static_cast<size_t>(size_.tokens());
    const std::span<const int32_t> ids = text_;
    return {size_.num_sequences, ids.first(n), ids.subspan(1)};
  }

  // By bisection: the larger tau, the fewer experts are active.
  void ChooseTau(double active_experts) {
    double low = 0, high = 8;
    for (int i = 0; i < 24; ++i) {
      routing_.tau = (low + high) / 2;
      const double active =
          model_.Forward(Text(), routing_).MeanActiveExperts();
      (active > active_experts ? low : high) = routing_.tau;
    }
  }

  const BenchmarkSize& size_;
  Model model_;
  Updater updater_;
  std::vector<int32_t> text_;
  // A cutoff that leaves about mean_active_experts active.
  RoutingState routing_{.temperature = 1.5, .tau = 1.0};
  int64_t step_ = 0;
};

ThreadPool& Pool() {
  static ThreadPool pool(kernels::benchmark_threads);
  return pool;
}

void BM_TrainingStep(benchmark::State& state, const BenchmarkSize& size,
                     const Row& row) {
  Trainee trainee(size, row, Pool());
  double active = trainee.Step();  // touches all memory
  std::vector<double> seconds;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    active = trainee.Step();
    const std::chrono::duration<double> step =
        std::chrono::steady_clock::now() - begin;
    seconds.push_back(step.count());
  }
  std::ranges::sort(seconds);
  const auto tokens = static_cast<double>(size.tokens());
  state.counters["tokens/s"] = tokens / seconds[seconds.size() / 2];
  state.counters["best_tokens/s"] = tokens / seconds.front();
  state.counters["active_experts"] = active;
  state.counters["threads"] = Pool().threads();
  state.SetLabel(size.Label());
}

StepProfile Measure(const BenchmarkSize& size, const Row& row, int threads) {
  ThreadPool pool(threads);
  Trainee trainee(size, row, pool);
  return ProfileStep(pool, [&] { trainee.Step(); });
}

void PrintProfile(const std::string& name) {
  std::string known;
  for (const BenchmarkSize& size : kernels::kBenchmarkSizes) {
    for (const Row& row : RowsOf(size)) {
      known += " " + NameOf(size, row);
      if (NameOf(size, row) != name) continue;
      const StepProfile all = Measure(size, row, kernels::benchmark_threads);
      const StepProfile one = all.threads == 1 ? all : Measure(size, row, 1);
      fmt::print("{}: {}\n{}", name, size.Label(),
                 StepProfileTable(all, one, size.tokens()));
      return;
    }
  }
  throw ConfigError(fmt::format("--profile={}: known are{}", name, known));
}

void AddBenchmarks() {
  for (const BenchmarkSize& size : kernels::kBenchmarkSizes) {
    for (const Row& row : RowsOf(size)) {
      benchmark::RegisterBenchmark(NameOf(size, row).c_str(), BM_TrainingStep,
                                   size, row)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

const bool added = [] {
  kernels::add_benchmarks.push_back(AddBenchmarks);
  kernels::print_profile = PrintProfile;
  return true;
}();

}  // namespace
}  // namespace softmoe::optimized
