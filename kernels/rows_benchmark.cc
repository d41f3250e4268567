// SPDX-License-Identifier: Apache-2.0
//
// rows_benchmark.cc - the routers; "per_row" is wall time of one row (64n = 64
// nanoseconds).
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "core/philox.h"
#include "kernels/benchmark_options.h"
#include "kernels/router.h"

namespace softmoe::kernels {
namespace {

// About normal, and as large as a fresh router's scores (SPEC.md 2.3).
std::vector<float> Scores(int64_t size) {
  const RandomKey key{1, RandomStream::kTestData, 0, 0};
  std::vector<float> x(size);
  for (int64_t i = 0; i < size; i += 2) {
    const auto words = PhiloxWords(key, i / 2);
    const auto normals = NormalsFromWords(words[0], words[1]);
    x[i] = static_cast<float>(0.5 * normals[0]);
    if (i + 1 < size) x[i + 1] = static_cast<float>(0.5 * normals[1]);
  }
  return x;
}

// A router's arrays, and a pass of each kind over them.
class RouterBench {
 public:
  RouterBench(int64_t tokens, int64_t experts, double mean_active,
              RouterMode mode)
      : scores_(Scores(tokens * experts)),
        soft_weights_(tokens * experts),
        d_scores_(tokens * experts),
        root_(2 * tokens),
        num_active_(tokens),
        probability_sums_(experts),
        scratch_(RouterScratch(tokens, experts)),
        balance_counts_(experts),
        active_counts_(experts),
        d_probability_(experts, 1e-4f) {
    RouterShape shape = {};
    shape.num_tokens = tokens;
    shape.num_experts = experts;
    shape.mode = mode;
    shape.balance = BalanceBasis::kSoftWeights;
    shape.mean_active = static_cast<float>(mean_active);
    shape.temperature = 2.0f;
    shape.cutoff = static_cast<float>(1.3 * mean_active / experts);
    shape.max_active = static_cast<int64_t>(std::ceil(
        mode == RouterMode::kSparse ? mean_active : 2 * mean_active - 1e-6));
    shape.balance_top = static_cast<int64_t>(std::ceil(mean_active));
    selected_.resize(tokens * shape.max_active);
    gates_.resize(tokens * shape.max_active);
    d_gates_.assign(tokens * shape.max_active, 0.01f);
    forward_ = {shape,
                scores_.data(),
                soft_weights_.data(),
                root_.data(),
                num_active_.data(),
                selected_.data(),
                gates_.data(),
                probability_sums_.data(),
                balance_counts_.data(),
                active_counts_.data(),
                /*z_sum=*/nullptr,
                &bad_score_,
                scratch_.data()};
    backward_ = {shape,
                 scores_.data(),
                 soft_weights_.data(),
                 root_.data(),
                 selected_.data(),
                 d_gates_.data(),
                 d_probability_.data(),
                 0.0f,
                 d_scores_.data(),
                 &d_mean_active_,
                 scratch_.data()};
  }
  void Forward(ThreadPool& pool) { RouterForward(forward_, pool); }
  void Backward(ThreadPool& pool) { RouterBackward(backward_, pool); }

 private:
  std::vector<float> scores_, soft_weights_, d_scores_, root_, gates_, d_gates_;
  std::vector<int32_t> num_active_, selected_;
  std::vector<double> probability_sums_, scratch_;
  std::vector<int64_t> balance_counts_, active_counts_;
  std::vector<float> d_probability_;
  double d_mean_active_ = 0;
  int64_t bad_score_ = 0;
  RouterForwardArgs forward_;
  RouterBackwardArgs backward_;
};

constexpr int64_t kTokens = 8192;

void PerRow(benchmark::State& state) {
  state.counters["per_row"] =
      benchmark::Counter(static_cast<double>(kTokens),
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kInvert);
}

// Arguments: experts, 10 * mean_active, threads.
RouterBench MakeSoft(const benchmark::State& state) {
  return RouterBench(kTokens, state.range(0),
                     static_cast<double>(state.range(1)) / 10,
                     RouterMode::kSoft);
}

void BM_RouterSoftForward(benchmark::State& state) {
  RouterBench bench = MakeSoft(state);
  ThreadPool pool(static_cast<int>(state.range(2)));
  for (auto _ : state) bench.Forward(pool);
  PerRow(state);
}

void BM_RouterSoftBackward(benchmark::State& state) {
  RouterBench bench = MakeSoft(state);
  ThreadPool pool(static_cast<int>(state.range(2)));
  bench.Forward(pool);
  for (auto _ : state) bench.Backward(pool);
  PerRow(state);
}

void BM_RouterSparseForward(benchmark::State& state) {
  RouterBench bench(kTokens, 32, 2, RouterMode::kSparse);
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) bench.Forward(pool);
  PerRow(state);
}

void BM_RouterSparseBackward(benchmark::State& state) {
  RouterBench bench(kTokens, 32, 2, RouterMode::kSparse);
  ThreadPool pool(static_cast<int>(state.range(0)));
  bench.Forward(pool);
  for (auto _ : state) bench.Backward(pool);
  PerRow(state);
}

void RouterSizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"experts", "k_tenths", "threads"})->UseRealTime();
  for (const int64_t threads : BenchmarkThreadCounts()) {
    for (int k : {10, 15, 20, 40}) b->Args({32, k, threads});
  }
  // The smoke and midi grids' routers.
  b->Args({8, 20, benchmark_threads})->Args({16, 20, benchmark_threads});
  b->Args({8, 15, 1})->Args({64, 20, 1})->Args({256, 20, 1});
}
void Threads(benchmark::internal::Benchmark* b) {
  b->ArgName("threads")->ArgsProduct({BenchmarkThreadCounts()})->UseRealTime();
}

void AddRowBenchmarks() {
  const auto add = [](const char* name, void (*run)(benchmark::State&),
                      void (*sizes)(benchmark::internal::Benchmark*)) {
    benchmark::RegisterBenchmark(name, run)->Apply(sizes);
  };
  add("BM_RouterSoftForward", BM_RouterSoftForward, RouterSizes);
  add("BM_RouterSoftBackward", BM_RouterSoftBackward, RouterSizes);
  add("BM_RouterSparseForward", BM_RouterSparseForward, Threads);
  add("BM_RouterSparseBackward", BM_RouterSparseBackward, Threads);
}

const bool rows_added =
    (add_benchmarks["cpu"].push_back(AddRowBenchmarks), true);

}  // namespace
}  // namespace softmoe::kernels
