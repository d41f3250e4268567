// SPDX-License-Identifier: Apache-2.0
//
// kernels_benchmark.cc - how fast the matrix kernels are, compared with the
// most that this machine can do.
//
//   FmaPeak               fused multiply-adds on registers: no kernel is faster
//   Gemm, Expert*         GFLOPS counts multiplications and additions that the
//                         mathematics needs (no padding, no recomputation);
//                         percent_of_peak: of FmaPeak with as many threads
//
// Names give the size, labels say what it stands for (benchmark_sizes.h). For
// the other operations see `bench --profile`.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/config/benchmark_sizes.h"
#include "core/philox.h"
#include "kernels/benchmark_options.h"
#include "kernels/expert_mlp.h"
#include "kernels/gemm.h"
#include "kernels/peaks.h"

namespace softmoe::kernels {
namespace {

using Size = BenchmarkSize;
constexpr double kMeanActive = 1.5;

std::vector<float> Random(int64_t size, uint32_t stream) {
  const RandomKey key{1, RandomStream::kTestData, stream, 0};
  std::vector<float> x(size);
  for (int64_t i = 0; i < size; ++i) {
    x[i] = static_cast<float>(UniformFromWord(PhiloxWords(key, i / 4)[i % 4]) -
                              0.5);
  }
  return x;
}

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return seconds.count();
}

// Times body(), which does `flops` operations.
template <class Body>
void TimeProducts(benchmark::State& state, double flops, ThreadPool& pool,
                  Body body) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) body();
  const double gflops = 1e-9 * flops * static_cast<double>(state.iterations()) /
                        SecondsSince(begin);
  state.counters["GFLOPS"] = gflops;
  state.counters["percent_of_peak"] = 100 * gflops / PeakGflops(pool);
}

void BM_FmaPeak(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  constexpr int64_t kSteps = 100000;
  std::vector<float> sink(pool.threads());
  TimeProducts(state, FmaPeakFlops(kSteps) * pool.threads(), pool, [&] {
    FmaPeak({kSteps, sink.data()}, pool);
  });
}

// compare.py also times it in torch.
void BM_Gemm(benchmark::State& state) {
  constexpr int64_t kSize = 1024;
  ThreadPool pool(static_cast<int>(state.range(0)));
  const auto a = Random(kSize * kSize, 1), b = Random(kSize * kSize, 2);
  std::vector<float> c(kSize * kSize);
  TimeProducts(state, 2.0 * kSize * kSize * kSize, pool, [&] {
    Gemm({a.data(), b.data(), c.data(), kSize, kSize, kSize, kSize, kSize,
          kSize},
         pool);
  });
}

// Tokens that choose one or two experts, some experts three times as often as
// others.
struct Experts {
  Size size;
  std::vector<int32_t> offsets, row_token, token_rows;
  std::vector<float> row_gate;
  std::vector<float> hidden, gate_up_weight, down_weight, out, d_out;
  std::vector<float> gate_up, row_output;

  explicit Experts(const Size& s) : size(s) {
    const int64_t cap = 3, experts = s.num_experts;
    token_rows.assign(s.tokens() * cap, -1);
    std::vector<std::vector<int32_t>> of_expert(experts);
    const RandomKey key{2, RandomStream::kTestData, 0, 0};
    for (int64_t t = 0; t < s.tokens(); ++t) {
      const auto words = PhiloxWords(key, t);
      const auto expert = [&](uint32_t word) {
        const double u = UniformFromWord(word);
        return static_cast<int64_t>(static_cast<double>(experts) * u *
                                    (0.5 + 0.5 * u));
      };
      const int64_t first = expert(words[0]), second = expert(words[1]);
      of_expert[first].push_back(static_cast<int32_t>(t));
      if (UniformFromWord(words[2]) < kMeanActive - 1 && second != first) {
        of_expert[second].push_back(static_cast<int32_t>(t));
      }
    }
    offsets.push_back(0);
    std::vector<int64_t> used(s.tokens(), 0);
    for (const auto& tokens : of_expert) {
      for (const int32_t t : tokens) {
        token_rows[t * cap + used[t]++] =
            static_cast<int32_t>(row_token.size());
        row_token.push_back(t);
      }
      offsets.push_back(static_cast<int32_t>(row_token.size()));
    }
    row_gate.assign(row_token.size(), 0.5f);
    hidden = Random(s.tokens() * s.d_model, 1);
    gate_up_weight = Random(experts * s.d_model * 2 * s.d_ffn, 2);
    down_weight = Random(experts * s.d_ffn * s.d_model, 3);
    d_out = Random(s.tokens() * s.d_model, 4);
    out.assign(s.tokens() * s.d_model, 0);
    gate_up.resize(rows() * 2 * s.d_ffn);
    row_output.resize(rows() * s.d_model);
  }
  int64_t rows() const { return static_cast<int64_t>(row_token.size()); }
  RoutePlan Plan() const {
    return {
        size.tokens(),  size.num_experts, rows(),          3,
        offsets.data(), row_token.data(), row_gate.data(), token_rows.data()};
  }
  void Forward(ThreadPool& pool) {
    ExpertForward(
        {Plan(), size.d_model, size.d_ffn, hidden.data(), gate_up_weight.data(),
         down_weight.data(), gate_up.data(), row_output.data(), out.data()},
        pool);
  }
  // Operations of the three products of the forward pass.
  double Flops() const {
    return 6.0 * static_cast<double>(rows() * size.d_model * size.d_ffn);
  }
};

void BM_ExpertForward(benchmark::State& state, const Size& size) {
  Experts experts(size);
  ThreadPool pool(static_cast<int>(state.range(0)));
  TimeProducts(state, experts.Flops(), pool, [&] { experts.Forward(pool); });
}

void BM_ExpertBackward(benchmark::State& state, const Size& size) {
  Experts x(size);
  ThreadPool pool(static_cast<int>(state.range(0)));
  x.Forward(pool);
  std::vector<float> d_gate_up(x.gate_up.size()), d_row(x.row_output.size());
  std::vector<float> activation(x.rows() * x.size.d_ffn), d_gate(x.rows());
  std::vector<float> d_hidden(x.hidden.size());
  std::vector<float> d_gate_up_weight(x.gate_up_weight.size());
  std::vector<float> d_down_weight(x.down_weight.size());
  TimeProducts(state, 2 * x.Flops(), pool, [&] {
    ExpertBackward(
        {x.Plan(), x.size.d_model, x.size.d_ffn, x.hidden.data(),
         x.gate_up_weight.data(), x.down_weight.data(), x.gate_up.data(),
         x.d_out.data(), d_gate_up.data(), d_row.data(), activation.data(),
         d_gate.data(), d_hidden.data(), d_gate_up_weight.data(),
         d_down_weight.data()},
        pool);
  });
}

using SizedBenchmark = void (*)(benchmark::State&, const Size&);

void AddBenchmarks() {
  auto* const peak = benchmark::RegisterBenchmark("BM_FmaPeak", BM_FmaPeak);
  peak->ArgName("threads")->UseRealTime();
  for (const int64_t threads : BenchmarkThreadCounts()) peak->Arg(threads);

  auto* const gemm =
      benchmark::RegisterBenchmark("BM_Gemm/1024/1024/1024", BM_Gemm);
  gemm->UseRealTime();
  for (const int64_t threads : BenchmarkThreadCounts()) gemm->Arg(threads);

  const std::map<std::string, SizedBenchmark> benchmarks = {
      {"BM_ExpertForward", BM_ExpertForward},
      {"BM_ExpertBackward", BM_ExpertBackward}};
  for (const auto& [name, run] : benchmarks) {
    for (const Size& size : kBenchmarkSizes) {
      auto* const sized = benchmark::RegisterBenchmark(
          (name + "/" + size.name).c_str(),
          [run = run, &size](benchmark::State& state) {
            run(state, size);
            state.SetLabel(size.Label());
          });
      sized->ArgName("threads")->Unit(benchmark::kMicrosecond)->UseRealTime();
      for (const int64_t threads : BenchmarkThreadCounts()) sized->Arg(threads);
    }
  }
}

const bool added = (add_benchmarks["cpu"].push_back(AddBenchmarks), true);

}  // namespace
}  // namespace softmoe::kernels
