// SPDX-License-Identifier: Apache-2.0
//
// kernels_benchmark.cc - how fast the matrix kernels are, beside what this
// machine can do at all.
//
//   FmaPeak               fused multiply-adds on registers: no kernel is faster
//   Gemm, Expert*, ...    GFLOPS counts multiplications and additions that the
//                         mathematics needs (no padding, no recomputation but
//                         the attention's); threads is the second argument
//
// Names end in the size: smoke (d_model 96) or mini (d_model 256).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/philox.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/expert_mlp.h"
#include "kernels/fma_peak.h"
#include "kernels/gemm.h"

namespace softmoe::kernels {
namespace {

struct Size {
  int64_t d_model, d_ffn, num_experts, num_heads, sequences, length, vocab;
  int64_t tokens() const { return sequences * length; }
};
constexpr Size kSizes[] = {{96, 192, 8, 4, 16, 128, 2048},    // smoke
                           {256, 512, 16, 4, 8, 256, 4096}};  // mini
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

void CountFlops(benchmark::State& state, double flops) {
  state.counters["GFLOPS"] =
      benchmark::Counter(1e-9 * flops * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void BM_FmaPeak(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  constexpr int64_t kSteps = 100000;
  std::vector<float> sink(pool.threads());
  for (auto _ : state) {
    FmaPeak({kSteps, sink.data()}, pool);
  }
  CountFlops(state, FmaPeakFlops(kSteps) * pool.threads());
}
BENCHMARK(BM_FmaPeak)->Arg(1)->Arg(4)->UseRealTime();

// m, n, k, threads, transposes (1: A, 2: B).
void BM_Gemm(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  ThreadPool pool(static_cast<int>(state.range(3)));
  const bool ta = state.range(4) & 1, tb = state.range(4) & 2;
  const auto a = Random(m * k, 1), b = Random(k * n, 2);
  std::vector<float> c(m * n);
  for (auto _ : state) {
    Gemm({a.data(), b.data(), c.data(), m, n, k, ta ? m : k, tb ? k : n, n, ta,
          tb},
         pool);
  }
  CountFlops(state, 2.0 * static_cast<double>(m * n * k));
}
BENCHMARK(BM_Gemm)
    ->Args({1024, 1024, 1024, 1, 0})
    ->Args({1024, 1024, 1024, 4, 0})
    ->Args({2048, 768, 256, 4, 0})  // mini qkv forward
    ->Args({2048, 256, 768, 4, 2})  // its d_hidden
    ->Args({256, 768, 2048, 4, 1})  // its d_weight
    ->Args({2048, 16, 256, 4, 0})   // router scores
    ->Args({2048, 288, 96, 4, 0})   // smoke qkv
    ->Args({2048, 96, 288, 4, 2})
    ->Args({96, 288, 2048, 4, 1})
    ->Args({2048, 8, 96, 4, 0})
    ->UseRealTime();

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
  // Of the three products of the forward pass.
  double Flops() const {
    return 6.0 * static_cast<double>(rows() * size.d_model * size.d_ffn);
  }
};

void BM_ExpertForward(benchmark::State& state) {
  Experts experts(kSizes[state.range(0)]);
  ThreadPool pool(static_cast<int>(state.range(1)));
  for (auto _ : state) experts.Forward(pool);
  CountFlops(state, experts.Flops());
}

void BM_ExpertBackward(benchmark::State& state) {
  Experts x(kSizes[state.range(0)]);
  ThreadPool pool(static_cast<int>(state.range(1)));
  x.Forward(pool);
  std::vector<float> d_gate_up(x.gate_up.size()), d_row(x.row_output.size());
  std::vector<float> activation(x.rows() * x.size.d_ffn), d_gate(x.rows());
  std::vector<float> d_hidden(x.hidden.size());
  std::vector<float> d_gate_up_weight(x.gate_up_weight.size());
  std::vector<float> d_down_weight(x.down_weight.size());
  for (auto _ : state) {
    ExpertBackward(
        {x.Plan(), x.size.d_model, x.size.d_ffn, x.hidden.data(),
         x.gate_up_weight.data(), x.down_weight.data(), x.gate_up.data(),
         x.d_out.data(), d_gate_up.data(), d_row.data(), activation.data(),
         d_gate.data(), d_hidden.data(), d_gate_up_weight.data(),
         d_down_weight.data()},
        pool);
  }
  CountFlops(state, 2 * x.Flops());
}

struct Heads {
  Size size;
  std::vector<float> qkv, out, log_sum_exp, d_out, d_qkv;

  explicit Heads(const Size& s) : size(s) {
    qkv = Random(s.tokens() * 3 * s.d_model, 1);
    d_out = Random(s.tokens() * s.d_model, 2);
    out.resize(s.tokens() * s.d_model);
    d_qkv.resize(qkv.size());
    log_sum_exp.resize(s.tokens() * s.num_heads);
  }
  void Forward(ThreadPool& pool) {
    AttentionForward({size.sequences, size.length, size.num_heads,
                      size.d_model / size.num_heads, qkv.data(), out.data(),
                      log_sum_exp.data()},
                     pool);
  }
  void Backward(ThreadPool& pool) {
    AttentionBackward({size.sequences, size.length, size.num_heads,
                       size.d_model / size.num_heads, qkv.data(), out.data(),
                       log_sum_exp.data(), d_out.data(), d_qkv.data()},
                      pool);
  }
  // Of one product with half of a [length, length] matrix per head.
  double Flops() const {
    return static_cast<double>(size.tokens() * size.d_model *
                               (size.length + 1));
  }
};

void BM_AttentionForward(benchmark::State& state) {
  Heads heads(kSizes[state.range(0)]);
  ThreadPool pool(static_cast<int>(state.range(1)));
  for (auto _ : state) heads.Forward(pool);
  CountFlops(state, 2 * heads.Flops());
}

void BM_AttentionBackward(benchmark::State& state) {
  Heads heads(kSizes[state.range(0)]);
  ThreadPool pool(static_cast<int>(state.range(1)));
  heads.Forward(pool);
  for (auto _ : state) heads.Backward(pool);
  CountFlops(state, 5 * heads.Flops());
}

void BM_HeadCrossEntropy(benchmark::State& state) {
  const Size size = kSizes[state.range(0)];
  ThreadPool pool(static_cast<int>(state.range(1)));
  const auto hidden = Random(size.tokens() * size.d_model, 1);
  const auto weight = Random(size.vocab * size.d_model, 2);
  std::vector<int32_t> targets(size.tokens());
  for (int64_t t = 0; t < size.tokens(); ++t) {
    targets[t] = static_cast<int32_t>(t * 7919 % size.vocab);
  }
  std::vector<float> loss(size.tokens()), d_hidden(hidden.size());
  std::vector<float> d_weight(weight.size());
  for (auto _ : state) {
    HeadCrossEntropy(
        {size.tokens(), size.d_model, size.vocab, hidden.data(), weight.data(),
         targets.data(), loss.data(), 1.0f, d_hidden.data(), d_weight.data()},
        pool);
  }
  CountFlops(state, 6.0 * static_cast<double>(size.tokens() * size.d_model *
                                              size.vocab));
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"mini", "threads"})
      ->ArgsProduct({{0, 1}, {1, 4}})
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}
BENCHMARK(BM_ExpertForward)->Apply(Sizes);
BENCHMARK(BM_ExpertBackward)->Apply(Sizes);
BENCHMARK(BM_AttentionForward)->Apply(Sizes);
BENCHMARK(BM_AttentionBackward)->Apply(Sizes);
BENCHMARK(BM_HeadCrossEntropy)->Apply(Sizes);

}  // namespace
}  // namespace softmoe::kernels
