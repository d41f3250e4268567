// SPDX-License-Identifier: Apache-2.0
//
// benchmark_sizes.h - the sizes at which speed is measured: those of the smoke,
// mini and midi grids. experiments/plan/benchmark_sizes_test.cc holds them to
// the grids.
#ifndef SOFTMOE_CORE_CONFIG_BENCHMARK_SIZES_H_
#define SOFTMOE_CORE_CONFIG_BENCHMARK_SIZES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/config/config.h"
#include "core/philox.h"

namespace softmoe {

struct BenchmarkSize {
  const char* name;
  int64_t num_layers, d_model, num_heads, d_ffn, num_experts, vocab_size;
  // The size of one step, which is timed as one balance group.
  int64_t sequence_length, num_sequences;
  int64_t grid_groups = 1;  // balance groups of a step of the grid

  int64_t tokens() const { return num_sequences * sequence_length; }

  ModelConfig Model() const {
    return {.num_layers = num_layers,
            .d_model = d_model,
            .num_heads = num_heads,
            .d_ffn = d_ffn,
            .num_experts = num_experts,
            .vocab_size = vocab_size,
            .sequence_length = sequence_length};
  }

  // Says in a row of results what was measured; compare.py reads it, too.
  std::string Label() const {
    const auto field = [](const char* key, int64_t value) {
      return key + std::to_string(value);
    };
    return field("layers=", num_layers) + field(" d_model=", d_model) +
           field(" heads=", num_heads) + field(" d_ffn=", d_ffn) +
           field(" experts=", num_experts) + field(" vocab=", vocab_size) +
           field(" length=", sequence_length) +
           field(" sequences=", num_sequences);
  }
};

inline constexpr BenchmarkSize kBenchmarkSizes[] = {
    {.name = "smoke",
     .num_layers = 4,
     .d_model = 64,
     .num_heads = 4,
     .d_ffn = 128,
     .num_experts = 8,
     .vocab_size = 1024,
     .sequence_length = 128,
     .num_sequences = 16},
    {.name = "mini",
     .num_layers = 10,
     .d_model = 128,
     .num_heads = 4,
     .d_ffn = 256,
     .num_experts = 16,
     .vocab_size = 2048,
     .sequence_length = 128,
     .num_sequences = 16,
     .grid_groups = 4},
    {.name = "midi",
     .num_layers = 6,
     .d_model = 256,
     .num_heads = 4,
     .d_ffn = 512,
     .num_experts = 16,
     .vocab_size = 4096,
     .sequence_length = 256,
     .num_sequences = 32},
};

// Token `place` of a text in which the frequency of id i is proportional to
// log(1 + 1/(i + 1)), roughly Zipf's law: of 32768 ids the first is every 15th
// token.
inline int32_t BenchmarkToken(int64_t place, int64_t vocab_size) {
  const RandomKey key{1, RandomStream::kTestData, 0, 0};
  const double uniform =
      0x1p-32 * PhiloxWords(key, static_cast<uint64_t>(place))[0];
  const double id =
      std::exp(uniform * std::log(static_cast<double>(vocab_size + 1))) - 1;
  return static_cast<int32_t>(
      std::min(static_cast<int64_t>(id), vocab_size - 1));
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_BENCHMARK_SIZES_H_
