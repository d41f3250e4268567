// SPDX-License-Identifier: Apache-2.0
//
// operation_benchmark.cc - each operation on a device, at the paper's shapes;
// the products of a step with each of several algorithms; the most that the
// device can do. Compiled for both backends of a device; that of fp32 also has
// the operations that are in fp32 whatever activations are.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/config/benchmark_sizes.h"
#include "core/errors.h"
#include "kernels/benchmark_options.h"
#include "optimized/device_benchmark.h"
#include "optimized/product.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

constexpr double kSize = sizeof(Activation);

double Real(int64_t count) { return static_cast<double>(count); }

// Token ids.
int32_t* Ids(Bench& bench, const Shapes& shapes) {
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < shapes.tokens(); ++t) {
    ids.push_back(BenchmarkToken(t, shapes.model.vocab_size));
  }
  return bench.Copied(ids);
}

// Each token has two experts, and all experts have about as many tokens.
kernels::BuildRoutePlanArgs EvenRouting(Bench& bench, const Shapes& shapes) {
  SOFTMOE_CHECK(shapes.active == 2) << shapes.active;
  const int64_t n = shapes.tokens(), experts = shapes.model.num_experts;
  std::vector<int32_t> selected;
  for (int64_t t = 0; t < n; ++t) {
    const int64_t first = t % experts;
    const int64_t second = (first + 1 + t / experts % (experts - 1)) % experts;
    selected.push_back(static_cast<int32_t>(std::min(first, second)));
    selected.push_back(static_cast<int32_t>(std::max(first, second)));
  }
  return bench.Filled(kernels::BuildRoutePlanArgs{
      .num_tokens = n,
      .num_experts = experts,
      .max_active = shapes.active,
      .num_active =
          bench.Copied(std::vector<int32_t>(static_cast<size_t>(n), 2)),
      .selected = bench.Copied(selected)});
}

kernels::RoutePlan EvenPlan(Bench& bench, const Shapes& shapes) {
  const kernels::BuildRoutePlanArgs routing = EvenRouting(bench, shapes);
  ops::BuildRoutePlan(routing, bench.queue());
  return {.num_tokens = shapes.tokens(),
          .num_experts = shapes.model.num_experts,
          .num_routed = shapes.routed(),
          .max_active = shapes.active,
          .expert_offsets = routing.expert_offsets,
          .row_token = routing.row_token,
          .row_gate = routing.row_gate,
          .token_rows = routing.token_rows};
}

// Operations that work row by row.
void AddRowOperations(const Shapes& shapes) {
  const auto& model = shapes.model;
  const int64_t n = shapes.tokens(), d = model.d_model,
                vocab = model.vocab_size;
  const double row_bytes = kSize * Real(n * d), float_bytes = 4 * Real(n * d);
  const std::string rows = fmt::format("{}x{}", n, d);
  const std::string of_vocab = fmt::format("{} of {}", rows, vocab);
  AddTimedCall({"rmsnorm", "rmsnorm", rows, 0, 2 * row_bytes},
               kernels::RmsNormForwardArgsOf<Activation>{
                   .num_tokens = n, .d_model = d, .epsilon = 1e-5f},
               ops::RmsNormForward);
  AddTimedCall(
      {"rmsnorm", "rmsnorm, backward", rows, 0, 4 * row_bytes},
      kernels::RmsNormBackwardArgsOf<Activation>{.num_tokens = n, .d_model = d},
      ops::RmsNormBackward);
  AddTimed(
      {"embedding", "embedding", of_vocab, 0, float_bytes + row_bytes},
      [=](Bench& bench) {
        return kernels::EmbeddingForwardArgsOf<Activation>{
            .num_tokens = n,
            .d_model = d,
            .ids = Ids(bench, shapes),
            .table = bench.Numbers<float>(vocab * d),
            .out = bench.Numbers<Activation>(n * d)};
      },
      ops::EmbeddingForward);
  AddTimed(
      {"embedding", "embedding, backward", of_vocab, 0,
       row_bytes + 4 * Real(vocab * d)},
      [=](Bench& bench) {
        return bench.Filled(kernels::EmbeddingBackwardArgsOf<Activation>{
            .num_tokens = n,
            .d_model = d,
            .vocab_size = vocab,
            .ids = Ids(bench, shapes)});
      },
      ops::EmbeddingBackward);
  AddTimedCall(
      {"rope", "rope", fmt::format("{}x{}", n, 2 * d), 0, 4 * row_bytes},
      kernels::RopeArgsOf<Activation>{.num_sequences = shapes.sequences,
                                      .sequence_length = model.sequence_length,
                                      .num_heads = model.num_heads,
                                      .head_dim = model.head_dim()},
      ops::Rope);
  AddTimedCall({"jitter", "jitter", rows, 0, row_bytes + float_bytes},
               kernels::InputJitterArgsOf<Activation, float>{
                   .num_tokens = n, .d_model = d, .amplitude = 0.01},
               ops::InputJitter);
  AddTimedCall(
      {"jitter", "jitter, backward", rows, 0, 2 * row_bytes + float_bytes},
      kernels::InputJitterArgsOf<float, Activation>{
          .num_tokens = n, .d_model = d, .amplitude = 0.01, .accumulate = true},
      ops::InputJitter);
  AddTimedCall(
      {"add", "+=", fmt::format("{}", n * d), 0, 2 * row_bytes + float_bytes},
      kernels::AddArgsOf<float, Activation>{.size = n * d},
      [](const auto& args, Queue& queue) { ops::Add(args, queue); });
}

// Operations made of products.
void AddProductOperations(const Shapes& shapes) {
  const auto& model = shapes.model;
  const int64_t n = shapes.tokens(), d = model.d_model, f = model.d_ffn,
                length = model.sequence_length, experts = model.num_experts,
                routed = shapes.routed(), vocab = model.vocab_size;
  const double row_bytes = kSize * Real(n * d);

  const auto attention = [=](auto args) {
    args.num_sequences = shapes.sequences;
    args.sequence_length = length;
    args.num_heads = model.num_heads;
    args.head_dim = model.head_dim();
    args.query_block = shapes.query_block();
    return args;
  };
  const std::string sequences =
      fmt::format("{} sequences of {}, {} heads of {}", shapes.sequences,
                  length, model.num_heads, model.head_dim());
  const double scores = 2 * Real(n * d) * Real(length + 1);  // causal
  AddTimedCall({"attention", "attention", sequences, scores, 4 * row_bytes},
               attention(kernels::AttentionForwardArgsOf<Activation>{}),
               ops::AttentionForward);
  AddTimedCall({"attention", "attention, backward", sequences, 2 * scores,
                8 * row_bytes},
               attention(kernels::AttentionBackwardArgsOf<Activation>{}),
               ops::AttentionBackward);

  const auto expert = [=](Bench& bench, auto args) {
    args.plan = EvenPlan(bench, shapes);
    args.d_model = d;
    args.d_ffn = f;
    args.host_offsets = bench.OnHost(args.plan.expert_offsets, experts + 1);
    return bench.Filled(args);
  };
  const std::string rows =
      fmt::format("{} rows, {} experts of {}x{}", routed, experts, d, f);
  const double products = 6 * Real(routed * d) * Real(f);
  const double weights = 3 * Real(experts * d * f);
  const double moved = 3 * row_bytes + 2 * kSize * Real(routed * f);
  AddTimed(
      {"experts", "experts", rows, products, kSize * weights + moved},
      [=](Bench& bench) {
        return expert(bench, kernels::ExpertForwardArgsOf<Activation>{});
      },
      ops::ExpertForward);
  AddTimed(
      {"experts", "experts, backward", rows, 2 * products,
       (kSize + 4) * weights + moved},
      [=](Bench& bench) {
        return expert(bench, kernels::ExpertBackwardArgsOf<Activation>{});
      },
      ops::ExpertBackward);

  AddTimed(
      {"lm_head", "head and loss, with gradients",
       fmt::format("{}x{}, vocabulary of {}", n, d, vocab),
       6 * Real(n * d) * Real(vocab),
       2 * row_bytes + (kSize + 4) * Real(vocab * d)},
      [=](Bench& bench) {
        return bench.Filled(
            kernels::HeadCrossEntropyArgsOf<Activation>{
                .num_tokens = n,
                .d_model = d,
                .vocab_size = vocab,
                .targets = Ids(bench, shapes),
                .grad_scale = 1e-5f,
                .chunk_tokens = shapes.head_chunk()},
            {"loss_sum"});
      },
      ops::HeadCrossEntropy);
  AddTimedCall(
      {"gemm", "qkv product", fmt::format("{}x{}x{}", n, 3 * d, d),
       6 * Real(n * d) * Real(d), 4 * row_bytes + 3 * kSize * Real(d * d)},
      DenseProduct<Activation, Activation>(nullptr, nullptr, nullptr,
                                           {.m = n, .n = 3 * d, .k = d}),
      ops::Gemm);
}

void AddRouter(const Shapes& shapes) {
  const int64_t n = shapes.tokens(), experts = shapes.model.num_experts;
  const kernels::RouterShape shape = {
      .num_tokens = n,
      .num_experts = experts,
      .mode = kernels::RouterMode::kSoft,
      .balance = kernels::BalanceBasis::kSoftWeights,
      .mean_active = 2,
      .temperature = 1.5f,
      .cutoff = 2.0f / static_cast<float>(experts),
      .max_active = 4,
      .balance_top = 2,
      .fallback_top1 = false};
  const int64_t slots = n * shape.max_active;
  const std::string text =
      fmt::format("{}x{}, at most {}", n, experts, shape.max_active);
  AddTimedCall({"router", "soft router", text, 0,
                8 * Real(n * experts) + 8 * Real(slots) + 12 * Real(n)},
               kernels::RouterForwardArgs{.shape = shape}, ops::RouterForward);
  AddTimed(
      {"router", "soft router, backward", text, 0,
       8 * Real(n * experts) + 8 * Real(slots) + 8 * Real(n)},
      [=](Bench& bench) {
        const auto forward =
            bench.Filled(kernels::RouterForwardArgs{.shape = shape});
        ops::RouterForward(forward, bench.queue());
        return bench.Filled(
            kernels::RouterBackwardArgs{.shape = shape,
                                        .scores = forward.scores,
                                        .soft_weights = forward.soft_weights,
                                        .root = forward.root,
                                        .selected = forward.selected});
      },
      ops::RouterBackward);
}

// What follows from the router's choice, for tokens with two experts each.
void AddRouting(const Shapes& shapes) {
  const int64_t n = shapes.tokens(), experts = shapes.model.num_experts;
  const int64_t slots = shapes.routed();
  const std::string shape =
      fmt::format("{}x{} of {}", n, shapes.active, experts);
  AddTimed(
      {"route_plan", "route plan", shape, 0, 20 * Real(slots)},
      [=](Bench& bench) { return EvenRouting(bench, shapes); },
      ops::BuildRoutePlan);
  AddTimed(
      {"route_plan", "gradients of gates", shape, 0, 12 * Real(slots)},
      [=](Bench& bench) {
        return kernels::GatherGateGradientsArgs{
            .num_tokens = n,
            .max_active = shapes.active,
            .token_rows = EvenPlan(bench, shapes).token_rows,
            .d_row_gate = bench.Numbers<float>(slots),
            .d_gates = bench.Numbers<float>(slots)};
      },
      ops::GatherGateGradients);
  AddTimed(
      {"routing_counts", "counts", shape, 0, 4 * Real(n) + 4 * Real(slots)},
      [=](Bench& bench) {
        return bench.Filled(
            kernels::RoutingCountsArgs{
                .num_tokens = n,
                .num_experts = experts,
                .max_active = shapes.active,
                .has_cutoff = true,
                .cutoff = 0.5f,
                .num_active = EvenRouting(bench, shapes).num_active},
            {"scores", "bad_score", "bad_value"});
      },
      ops::RoutingCounts);
  AddTimedCall({"logit_noise", "noise of scores",
                fmt::format("{}x{}", n, experts), 0, 8 * Real(n * experts)},
               kernels::LogitNoiseArgs{
                   .num_tokens = n, .num_experts = experts, .sigma = 0.01},
               ops::LogitNoise);
  AddTimedCall({"balance_loss", "auxiliary losses", fmt::format("{}", experts),
                0, 20 * Real(experts)},
               kernels::BalanceLossArgs{.num_tokens = n,
                                        .num_experts = experts,
                                        .aux_loss_coeff = 0.01,
                                        .z_loss_coeff = 0.001,
                                        .group_scale = 1},
               ops::BalanceLoss);
  const int64_t layers = shapes.model.num_layers;
  AddTimedCall(
      {"budget", "gradient of the budget", fmt::format("{}", layers), 0,
       20 * Real(layers)},
      kernels::BudgetGradientArgs{.num_layers = layers, .spare_budget = 1},
      ops::BudgetGradient);
}

void AddParameters(const Shapes& shapes) {
  const int64_t size = shapes.parameters;
  const std::string shape = fmt::format("{}", size);
  AddTimed(
      {"adamw", "adamw", shape, 0, 28 * Real(size)},
      [=](Bench& bench) {
        return bench.Filled(
            kernels::AdamWArgs{.size = size,
                               .learning_rate = 1e-3f,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .epsilon = 1e-8f,
                               .weight_decay = 0.01f,
                               .bias1 = 10,
                               .bias2 = 20,
                               .gradient_scale = 1,
                               .second_moment = bench.Zeros<float>(size)});
      },
      ops::AdamW);
  AddTimedCall({"sum_of_squares", "sum of squares", shape, 0, 4 * Real(size)},
               kernels::SumOfSquaresArgs{.size = size}, ops::SumOfSquares);
}

// Casts between the types of a backend that has two.
void AddCasts(const Shapes& shapes) {
  const int64_t size = shapes.parameters;
  const std::string shape = fmt::format("{}", size);
  const auto cast = [](const auto& args, Queue& queue) {
    CastArray(queue, args.size, args.from, args.to);
  };
  AddTimedCall({"cast", "to bf16", shape, 0, 6 * Real(size)},
               kernels::CastToBf16Args{.size = size}, cast);
  AddTimedCall({"cast", "to float", shape, 0, 6 * Real(size)},
               kernels::CastToFloatArgs{.size = size}, cast);
}

// ---- Algorithms of products, and the most that the device can do

enum Transposed { kNone, kA, kB };

// A product of [m, k] and [k, n]. Weight gradients are not accumulated.
struct Product {
  std::string name;
  int64_t m, n, k;
  Transposed transposed = kNone;
  bool is_float = false;  // the result, whatever the operands are
};

// The products of the model's step, with the model's types: for other types the
// heuristic gives other algorithms.
std::vector<Product> ProductsOfAStep(const Shapes& shapes) {
  const int64_t tokens = shapes.tokens(), d = shapes.model.d_model;
  const int64_t f = shapes.model.d_ffn, vocab = shapes.model.vocab_size;
  const int64_t rows = shapes.routed() / shapes.model.num_experts;
  return {{"qkv", tokens, 3 * d, d},
          {"qkv d_input", tokens, d, 3 * d, kB},
          {"qkv d_weight", d, 3 * d, tokens, kA, true},
          {"expert gate and up", rows, 2 * f, d},
          {"expert down", rows, d, f},
          {"expert d_activation", rows, f, d, kB},
          {"expert d_hidden", rows, d, 2 * f, kB},
          {"expert d_gate_up_weight", d, 2 * f, rows, kA, true},
          {"expert d_down_weight", f, d, rows, kA, true},
          {"head", shapes.head_chunk(), vocab, d, kB, true}};
}

template <typename Result>
void AddProductOf(const std::string& kind, const Product& p,
                  std::optional<int> algorithm) {
  AddTimedCall(
      {.operation = "gemm",
       .name = p.name,
       .shape = fmt::format("{}x{}x{}", p.m, p.n, p.k),
       .flops = 2 * Real(p.m) * Real(p.n) * Real(p.k),
       .kind = kind,
       .algorithm = algorithm},
      DenseProduct<Activation, Result>(nullptr, nullptr, nullptr,
                                       {.m = p.m,
                                        .n = p.n,
                                        .k = p.k,
                                        .transpose_a = p.transposed == kA,
                                        .transpose_b = p.transposed == kB}),
      ops::Gemm);
}

void AddProduct(const std::string& kind, const Product& p,
                std::optional<int> algorithm) {
  if (p.is_float) {
    AddProductOf<float>(kind, p, algorithm);
  } else {
    AddProductOf<Activation>(kind, p, algorithm);
  }
}

// The products of a step with each of the first algorithms of cuBLASLt's
// heuristic.
void AddAlgorithms(const Shapes& shapes) {
  for (const Product& product : ProductsOfAStep(shapes)) {
    for (int choice = 0; choice < kernels::kProductChoices; ++choice) {
      AddProduct("algorithm", product, choice);
    }
  }
}

// An array, and where it is copied to.
struct Copy {
  int64_t size;
  const float* from;
  float* to;
};

void AddCeilings(const Shapes& shapes) {
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
         .bytes = 2 * Real(bytes),
         .kind = "ceiling"},
        [size = shapes.copied](Bench& bench) {
          return Copy{size, bench.Numbers<float>(size),
                      bench.Numbers<float>(size)};
        },
        [](const Copy& copy, Queue& queue) {
          CopyArray(queue, copy.size, copy.from, copy.to);
        });
  }
}

void AddBenchmarks() {
  const Shapes shapes = TheShapes();
  if (kPrecision == Precision::kFp32) {
    AddRouter(shapes);
    AddRouting(shapes);
    AddParameters(shapes);
  } else {
    AddCasts(shapes);
  }
  AddRowOperations(shapes);
  AddProductOperations(shapes);
  AddAlgorithms(shapes);
  AddCeilings(shapes);
}

const bool added =
    (kernels::add_benchmarks["cuda"].push_back(AddBenchmarks), true);

}  // namespace
}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
