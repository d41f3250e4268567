// SPDX-License-Identifier: Apache-2.0
//
// product_benchmark.cc - the most that a device can do, and the products of a
// step with each of the first algorithms of cuBLASLt's heuristic. Compiled for
// both backends of a device.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/benchmark_options.h"
#include "optimized/device_benchmark.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

enum Transposed { kNone, kA, kB };

// [m, k] [k, n]. Weight gradients are not accumulated.
struct Product {
  std::string name;
  int64_t m, n, k;
  Transposed transposed = kNone;
};

std::vector<Product> ProductsOfAStep(const Shapes& shapes) {
  const int64_t tokens = shapes.tokens(), d = shapes.model.d_model;
  const int64_t f = shapes.model.d_ffn, vocab = shapes.model.vocab_size;
  const int64_t rows = shapes.routed() / shapes.model.num_experts;
  return {{"qkv", tokens, 3 * d, d},
          {"qkv d_input", tokens, d, 3 * d, kB},
          {"qkv d_weight", d, 3 * d, tokens, kA},
          {"expert gate and up", rows, 2 * f, d},
          {"expert down", rows, d, f},
          {"expert d_activation", rows, f, d, kB},
          {"expert d_hidden", rows, d, 2 * f, kB},
          {"expert d_gate_up_weight", d, 2 * f, rows, kA},
          {"expert d_down_weight", f, d, rows, kA},
          {"head", shapes.head_chunk(), vocab, d, kB}};
}

void AddProduct(const std::string& kind, const Product& p,
                std::optional<int> algorithm) {
  const bool a = p.transposed == kA, b = p.transposed == kB;
  AddTimedCall({.operation = "gemm",
                .name = p.name,
                .shape = fmt::format("{}x{}x{}", p.m, p.n, p.k),
                .flops = 2.0 * static_cast<double>(p.m) *
                         static_cast<double>(p.n) * static_cast<double>(p.k),
                .kind = kind,
                .algorithm = algorithm},
               kernels::GemmArgsOf<Activation, Activation>{.m = p.m,
                                                           .n = p.n,
                                                           .k = p.k,
                                                           .lda = a ? p.m : p.k,
                                                           .ldb = b ? p.k : p.n,
                                                           .ldc = p.n,
                                                           .transpose_a = a,
                                                           .transpose_b = b},
               ops::Gemm);
}

// An array, and where it is copied to.
struct Copy {
  int64_t size;
  const float* from;
  float* to;
};

void AddBenchmarks() {
  const Shapes shapes = TheShapes();
  const bool fp32 = kPrecision == Precision::kFp32;
  const int64_t side = fp32 ? shapes.fp32_side : shapes.bf16_side;
  AddProduct(
      "ceiling",
      {fmt::format("product {}", EnumName(kPrecision)), side, side, side},
      std::nullopt);
  if (fp32) {
    const int64_t bytes = 4 * shapes.copied;
    AddTimed(
        {.operation = "copy",
         .name = "copy",
         .shape = fmt::format("{} bytes", bytes),
         .bytes = 2 * static_cast<double>(bytes),
         .kind = "ceiling"},
        [size = shapes.copied](Bench& bench) {
          return Copy{size, bench.Numbers<float>(size),
                      bench.Numbers<float>(size)};
        },
        [](const Copy& copy, Queue& queue) {
          CopyArray(queue, copy.size, copy.from, copy.to);
        });
  }
  for (const Product& product : ProductsOfAStep(shapes)) {
    for (int choice = 0; choice < kernels::kProductChoices; ++choice) {
      AddProduct("algorithm", product, choice);
    }
  }
}

const bool added =
    (kernels::add_benchmarks["cuda"].push_back(AddBenchmarks), true);

}  // namespace
}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
