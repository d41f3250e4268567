// SPDX-License-Identifier: Apache-2.0
//
// rows_benchmark.cc - the router per row, RMSNorm and AdamW against memory.
//
// "per_row" is wall time of one row (64n = 64 nanoseconds); bytes_per_second
// counts what must be read and written once.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "core/philox.h"
#include "kernels/adamw.h"
#include "kernels/benchmark_options.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"

namespace softmoe::kernels {
namespace {

// About normal, of the size that a fresh router's scores have (SPEC.md 2.3).
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
  void Plan(ThreadPool& pool) {
    const RouterShape& s = forward_.shape;
    offsets_.resize(s.num_experts + 1);
    row_token_.resize(selected_.size());
    row_gate_.resize(selected_.size());
    token_rows_.resize(selected_.size());
    plan_scratch_.resize(RoutePlanScratch(s.num_tokens, s.num_experts));
    BuildRoutePlan(
        {s.num_tokens, s.num_experts, s.max_active, num_active_.data(),
         selected_.data(), gates_.data(), offsets_.data(), row_token_.data(),
         row_gate_.data(), token_rows_.data(), plan_scratch_.data()},
        pool);
  }

 private:
  std::vector<float> scores_, soft_weights_, d_scores_, root_, gates_, d_gates_;
  std::vector<int32_t> num_active_, selected_;
  std::vector<double> probability_sums_, scratch_;
  std::vector<int64_t> balance_counts_, active_counts_;
  std::vector<float> d_probability_;
  std::vector<int32_t> offsets_, row_token_, token_rows_, plan_scratch_;
  std::vector<float> row_gate_;
  double d_mean_active_ = 0;
  int64_t bad_score_ = 0;
  RouterForwardArgs forward_;
  RouterBackwardArgs backward_;
};

constexpr int64_t kTokens = 8192;

void PerRow(benchmark::State& state, int64_t rows) {
  state.counters["per_row"] = benchmark::Counter(
      static_cast<double>(rows), benchmark::Counter::kIsIterationInvariantRate |
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
  PerRow(state, kTokens);
}

void BM_RouterSoftBackward(benchmark::State& state) {
  RouterBench bench = MakeSoft(state);
  ThreadPool pool(static_cast<int>(state.range(2)));
  bench.Forward(pool);
  for (auto _ : state) bench.Backward(pool);
  PerRow(state, kTokens);
}

void BM_RouterSparseForward(benchmark::State& state) {
  RouterBench bench(kTokens, 32, 2, RouterMode::kSparse);
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) bench.Forward(pool);
  PerRow(state, kTokens);
}

void BM_RouterSparseBackward(benchmark::State& state) {
  RouterBench bench(kTokens, 32, 2, RouterMode::kSparse);
  ThreadPool pool(static_cast<int>(state.range(0)));
  bench.Forward(pool);
  for (auto _ : state) bench.Backward(pool);
  PerRow(state, kTokens);
}

void BM_RoutePlan(benchmark::State& state) {
  RouterBench bench(kTokens, 32, 2, RouterMode::kSoft);
  ThreadPool pool(static_cast<int>(state.range(0)));
  bench.Forward(pool);
  for (auto _ : state) bench.Plan(pool);
  PerRow(state, kTokens);
}

// Arguments: tokens, d_model, threads.
void BM_RmsNormForward(benchmark::State& state) {
  const int64_t tokens = state.range(0), d_model = state.range(1);
  const auto x = Scores(tokens * d_model), weight = Scores(d_model);
  std::vector<float> y(x.size()), rstd(tokens);
  ThreadPool pool(static_cast<int>(state.range(2)));
  for (auto _ : state) {
    RmsNormForward({tokens, d_model, 1e-5f, x.data(), weight.data(), y.data(),
                    rstd.data()},
                   pool);
  }
  PerRow(state, tokens);
  state.SetBytesProcessed(state.iterations() * tokens * d_model * 8);
}

void BM_RmsNormBackward(benchmark::State& state) {
  const int64_t tokens = state.range(0), d_model = state.range(1);
  const auto x = Scores(tokens * d_model), weight = Scores(d_model);
  const auto d_y = Scores(tokens * d_model);
  const std::vector<float> rstd(tokens, 1.0f);
  std::vector<float> d_x(x.size()), d_weight(d_model);
  std::vector<float> scratch(RmsNormScratch(tokens, d_model));
  ThreadPool pool(static_cast<int>(state.range(2)));
  for (auto _ : state) {
    RmsNormBackward({tokens, d_model, x.data(), weight.data(), rstd.data(),
                     d_y.data(), d_x.data(), d_weight.data(), scratch.data()},
                    pool);
  }
  PerRow(state, tokens);
  state.SetBytesProcessed(state.iterations() * tokens * d_model * 16);
}

// Arguments: elements, threads. 28 bytes an element.
void BM_AdamW(benchmark::State& state) {
  const int64_t size = state.range(0);
  const auto gradient = Scores(size);
  std::vector<float> parameter(size), first(size), second(size);
  ThreadPool pool(static_cast<int>(state.range(1)));
  for (auto _ : state) {
    AdamW({size, 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 10, 20, 1, gradient.data(),
           parameter.data(), first.data(), second.data()},
          pool);
  }
  state.SetBytesProcessed(state.iterations() * size * 28);
}

void BM_SumOfSquares(benchmark::State& state) {
  const int64_t size = state.range(0);
  const auto x = Scores(size);
  std::vector<double> scratch(SumOfSquaresScratch(size));
  double result;
  ThreadPool pool(static_cast<int>(state.range(1)));
  for (auto _ : state) {
    SumOfSquares({size, x.data(), &result, scratch.data()}, pool);
    benchmark::DoNotOptimize(result);
  }
  state.SetBytesProcessed(state.iterations() * size * 4);
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
void NormSizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"tokens", "d_model", "threads"})
      ->ArgsProduct({{256, 16384}, {128, 640}, BenchmarkThreadCounts()})
      ->UseRealTime();
}
void FlatSizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"size", "threads"})
      ->ArgsProduct({{1 << 16, 1 << 23}, BenchmarkThreadCounts()})
      ->UseRealTime();
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
  add("BM_RoutePlan", BM_RoutePlan, Threads);
  add("BM_RmsNormForward", BM_RmsNormForward, NormSizes);
  add("BM_RmsNormBackward", BM_RmsNormBackward, NormSizes);
  add("BM_AdamW", BM_AdamW, FlatSizes);
  add("BM_SumOfSquares", BM_SumOfSquares, FlatSizes);
}

const bool rows_added =
    (add_benchmarks["cpu"].push_back(AddRowBenchmarks), true);

}  // namespace
}  // namespace softmoe::kernels
