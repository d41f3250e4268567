// SPDX-License-Identifier: Apache-2.0
//
// Times each operation at the paper's shapes, with its minimum of computing and
// memory traffic: each operand read once, each result written once. Scratch and
// recomputation do not count.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/errors.h"
#include "core/testing/random_test_util.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/noise_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/cuda/row_kernels.h"
#include "property_tests/gpu/device_array.h"
#include "property_tests/gpu/paper_shapes.h"
#include "property_tests/gpu/stages.h"

// Arguments that are not given are null until Call fills them in.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace softmoe::gpu {
namespace {

using kernels::Bf16;

// A timed call and its minimal requirements.
struct Timed {
  std::string name, operation, precision, shape;
  double flops, bytes;
};

using Names = std::initializer_list<std::string_view>;

// The arguments of a call. Arrays that they lack are made here, with numbers
// that do not matter, except for those named in `without`.
template <typename Args>
struct Call {
  explicit Call(const Args& given, Names without = {}) : args(given) {
    ForEachArray(args, [&]<typename T>(std::string_view name, T*& pointer,
                                       int64_t size) {
      if (pointer != nullptr || std::ranges::count(without, name) > 0) return;
      const auto array =
          std::make_shared<DeviceArray<std::remove_const_t<T>>>(size);
      pointer = array->data();
      arrays.push_back(array);
    });
  }

  Args args;
  std::vector<std::shared_ptr<const void>> arrays = {};
};

// Times calls and tells of them.
struct Teller {
  const StageContext& context;
  const Shapes& shapes;
  kernels::Queue& queue;

  void Tell(const Timed& timed, const std::function<void()>& launch) const {
    const std::optional<double> seconds = SecondsOf(launch);
    Line line = {{"kind", "time"},
                 {"name", timed.name},
                 {"operation", timed.operation},
                 {"precision", timed.precision},
                 {"shape", timed.shape},
                 {"flops", timed.flops},
                 {"bytes", timed.bytes}};
    if (seconds) line["seconds"] = *seconds;
    context.tell(line);
  }
  template <typename Args>
  void Tell(const Timed& timed, const Call<Args>& call,
            void (*kernel)(const Args&, CUstream_st*)) const {
    Tell(timed, [&] { kernel(call.args, queue.stream()); });
  }
  template <typename Args>
  void Tell(const Timed& timed, const Call<Args>& call,
            void (*kernel)(const Args&, kernels::Queue&)) const {
    Tell(timed, [&] { kernel(call.args, queue); });
  }
};

double Real(int64_t count) { return static_cast<double>(count); }

// Each token has two experts, and all experts have about as many tokens.
class EvenPlan {
 public:
  explicit EvenPlan(const Shapes& shapes) {
    SOFTMOE_CHECK(shapes.active == 2) << shapes.active;
    const int64_t tokens = shapes.tokens();
    const int64_t experts = shapes.model.num_experts;
    std::vector<std::vector<int32_t>> of_expert(static_cast<size_t>(experts));
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t first = t % experts;
      const int64_t second =
          (first + 1 + t / experts % (experts - 1)) % experts;
      for (const int64_t expert : {first, second}) {
        of_expert[static_cast<size_t>(expert)].push_back(
            static_cast<int32_t>(t));
      }
    }
    offsets = {0};
    std::vector<int32_t> rows_of_token(static_cast<size_t>(2 * tokens), -1);
    for (const std::vector<int32_t>& of_one : of_expert) {
      for (const int32_t token : of_one) {
        int32_t* rows = rows_of_token.data() + 2 * token;
        rows[rows[0] < 0 ? 0 : 1] = static_cast<int32_t>(row_token.size());
        row_token.push_back(token);
      }
      offsets.push_back(static_cast<int32_t>(row_token.size()));
    }
    offsets_ = std::make_unique<DeviceArray<int32_t>>(offsets);
    row_token_ = std::make_unique<DeviceArray<int32_t>>(row_token);
    token_rows_ = std::make_unique<DeviceArray<int32_t>>(rows_of_token);
    row_gate_ = std::make_unique<DeviceArray<float>>(shapes.routed());
    plan = {.num_tokens = tokens,
            .num_experts = experts,
            .num_routed = shapes.routed(),
            .max_active = shapes.active,
            .expert_offsets = offsets_->data(),
            .row_token = row_token_->data(),
            .row_gate = row_gate_->data(),
            .token_rows = token_rows_->data()};
  }

  kernels::RoutePlan plan;
  // Copies on the host.
  std::vector<int32_t> offsets, row_token;

 private:
  std::unique_ptr<DeviceArray<int32_t>> offsets_, row_token_, token_rows_;
  std::unique_ptr<DeviceArray<float>> row_gate_;
};

template <typename T>
constexpr const char* kPrecision = sizeof(T) == 2 ? "bf16" : "fp32";
template <typename T>
constexpr double kSize = sizeof(T);

template <typename T>
void TellRmsNorm(const Teller& to) {
  const int64_t n = to.shapes.tokens(), d = to.shapes.model.d_model;
  const std::string shape = fmt::format("{}x{}", n, d);
  const Call forward(kernels::RmsNormForwardArgsOf<T>{
      .num_tokens = n, .d_model = d, .epsilon = 1e-5f});
  to.Tell({"rmsnorm", "rmsnorm", kPrecision<T>, shape, 0,
           2 * kSize<T> * Real(n * d)},
          forward, device::RmsNormForward);
  const Call backward(
      kernels::RmsNormBackwardArgsOf<T>{.num_tokens = n,
                                        .d_model = d,
                                        .x = forward.args.x,
                                        .weight = forward.args.weight,
                                        .rstd = forward.args.rstd});
  to.Tell({"rmsnorm, backward", "rmsnorm", kPrecision<T>, shape, 0,
           4 * kSize<T> * Real(n * d)},
          backward, device::RmsNormBackward);
}

std::vector<int32_t> Ids(const Shapes& shapes) {
  return RandomIds(shapes.tokens(), shapes.model.vocab_size, 1, 1);
}

template <typename T>
void TellEmbedding(const Teller& to) {
  const int64_t n = to.shapes.tokens(), d = to.shapes.model.d_model,
                vocab = to.shapes.model.vocab_size;
  const DeviceArray<int32_t> ids(Ids(to.shapes));
  const Call backward(kernels::EmbeddingBackwardArgsOf<T>{
      .num_tokens = n, .d_model = d, .vocab_size = vocab, .ids = ids.data()});
  const DeviceArray<T> out(n * d);
  const std::string shape = fmt::format("{}x{} of {}", n, d, vocab);
  to.Tell(
      {"embedding", "embedding", kPrecision<T>, shape, 0,
       (4 + kSize<T>)*Real(n * d)},
      [&] {
        device::EmbeddingForward(
            kernels::EmbeddingForwardArgsOf<T>{.num_tokens = n,
                                               .d_model = d,
                                               .ids = ids.data(),
                                               .table = backward.args.d_table,
                                               .out = out.data()},
            to.queue.stream());
      });
  to.Tell({"embedding, backward", "embedding", kPrecision<T>, shape, 0,
           kSize<T> * Real(n * d) + 4 * Real(vocab * d)},
          backward, device::EmbeddingBackward);
}

template <typename T>
void TellAttention(const Teller& to) {
  const auto& model = to.shapes.model;
  const int64_t n = to.shapes.tokens(), d = model.d_model,
                sequences = to.shapes.sequences, length = model.sequence_length,
                heads = model.num_heads;
  const std::string shape =
      fmt::format("{} sequences of {}, {} heads of {}", sequences, length,
                  heads, model.head_dim());
  const double flops = 2 * Real(n * d) * Real(length + 1);  // causal
  const Call forward(kernels::AttentionForwardArgsOf<T>{
      .num_sequences = sequences,
      .sequence_length = length,
      .num_heads = heads,
      .head_dim = model.head_dim(),
      .query_block = to.shapes.query_block()});
  to.Tell({"attention", "attention", kPrecision<T>, shape, flops,
           4 * kSize<T> * Real(n * d)},
          forward, device::AttentionForward);
  const Call backward(kernels::AttentionBackwardArgsOf<T>{
      .num_sequences = sequences,
      .sequence_length = length,
      .num_heads = heads,
      .head_dim = model.head_dim(),
      .qkv = forward.args.qkv,
      .out = forward.args.out,
      .log_sum_exp = forward.args.log_sum_exp,
      .query_block = to.shapes.query_block(),
      .scratch = forward.args.scratch});
  to.Tell({"attention, backward", "attention", kPrecision<T>, shape, 2 * flops,
           8 * kSize<T> * Real(n * d)},
          backward, device::AttentionBackward);
}

template <typename T>
void TellExperts(const Teller& to) {
  const auto& model = to.shapes.model;
  const int64_t n = to.shapes.tokens(), d = model.d_model, f = model.d_ffn,
                experts = model.num_experts, routed = to.shapes.routed();
  const EvenPlan even(to.shapes);
  const std::string shape =
      fmt::format("{} rows, {} experts of {}x{}", routed, experts, d, f);
  const double flops = 6 * Real(routed * d) * Real(f);
  const double weights = 3 * Real(experts * d * f);
  const Call forward(
      kernels::ExpertForwardArgsOf<T>{.plan = even.plan,
                                      .d_model = d,
                                      .d_ffn = f,
                                      .host_offsets = even.offsets.data()});
  to.Tell({"experts", "experts", kPrecision<T>, shape, flops,
           kSize<T> * (weights + 3 * Real(n * d) + 2 * Real(routed * f))},
          forward, device::ExpertForward);
  const Call backward(kernels::ExpertBackwardArgsOf<T>{
      .plan = even.plan,
      .d_model = d,
      .d_ffn = f,
      .hidden = forward.args.hidden,
      .gate_up_weight = forward.args.gate_up_weight,
      .down_weight = forward.args.down_weight,
      .gate_up = forward.args.gate_up,
      .d_out = forward.args.out,
      .d_row_hidden = forward.args.row_output,
      .activation = forward.args.activation,
      .host_offsets = even.offsets.data()});
  to.Tell({"experts, backward", "experts", kPrecision<T>, shape, 2 * flops,
           (kSize<T> + 4) * weights +
               kSize<T> * (3 * Real(n * d) + 2 * Real(routed * f))},
          backward, device::ExpertBackward);
}

template <typename T>
void TellHead(const Teller& to) {
  const int64_t n = to.shapes.tokens(), d = to.shapes.model.d_model,
                vocab = to.shapes.model.vocab_size;
  const DeviceArray<int32_t> targets(Ids(to.shapes));
  to.Tell(
      {"head and loss, with gradients", "lm_head", kPrecision<T>,
       fmt::format("{}x{}, vocabulary of {}", n, d, vocab),
       6 * Real(n * d) * Real(vocab),
       kSize<T> * (2 * Real(n * d) + Real(vocab * d)) + 4 * Real(vocab * d)},
      Call(kernels::HeadCrossEntropyArgsOf<T>{.num_tokens = n,
                                              .d_model = d,
                                              .vocab_size = vocab,
                                              .targets = targets.data(),
                                              .grad_scale = 1e-5f,
                                              .chunk_tokens =
                                                  to.shapes.head_chunk()},
           {"loss_sum"}),
      device::HeadCrossEntropy);
}

template <typename T>
void TellGemm(const Teller& to) {
  const int64_t n = to.shapes.tokens(), d = to.shapes.model.d_model;
  to.Tell(
      {"qkv product", "gemm", kPrecision<T>,
       fmt::format("{}x{}x{}", n, 3 * d, d), 6 * Real(n * d) * Real(d),
       kSize<T> * (4 * Real(n * d) + 3 * Real(d * d))},
      Call(kernels::GemmArgsOf<T, T>{
          .m = n, .n = 3 * d, .k = d, .lda = d, .ldb = 3 * d, .ldc = 3 * d}),
      device::Gemm);
}

template <typename T>
void TellRope(const Teller& to) {
  const auto& model = to.shapes.model;
  const int64_t n = to.shapes.tokens(), d = model.d_model;
  to.Tell({"rope", "rope", kPrecision<T>, fmt::format("{}x{}", n, 2 * d), 0,
           4 * kSize<T> * Real(n * d)},
          Call(kernels::RopeArgsOf<T>{.num_sequences = to.shapes.sequences,
                                      .sequence_length = model.sequence_length,
                                      .num_heads = model.num_heads,
                                      .head_dim = model.head_dim()}),
          device::Rope);
}

template <typename T>
void TellJitter(const Teller& to) {
  const int64_t n = to.shapes.tokens(), d = to.shapes.model.d_model;
  const std::string shape = fmt::format("{}x{}", n, d);
  to.Tell({"jitter", "jitter", kPrecision<T>, shape, 0,
           (kSize<T> + 4) * Real(n * d)},
          Call(kernels::InputJitterArgsOf<T, float>{
              .num_tokens = n, .d_model = d, .amplitude = 0.01}),
          device::InputJitter);
  to.Tell({"jitter, backward", "jitter", kPrecision<T>, shape, 0,
           (2 * kSize<T> + 4) * Real(n * d)},
          Call(kernels::InputJitterArgsOf<float, T>{.num_tokens = n,
                                                    .d_model = d,
                                                    .amplitude = 0.01,
                                                    .accumulate = true}),
          device::InputJitter);
}

template <typename T>
void TellAdd(const Teller& to) {
  const int64_t size = to.shapes.tokens() * to.shapes.model.d_model;
  to.Tell({"+=", "add", kPrecision<T>, fmt::format("{}", size), 0,
           (2 * kSize<T> + 4) * Real(size)},
          Call(kernels::AddArgsOf<float, T>{.size = size}), device::Add);
}

// Those whose activations are of this type.
template <typename T>
void TellLayers(const Teller& to) {
  TellRmsNorm<T>(to);
  TellEmbedding<T>(to);
  TellAttention<T>(to);
  TellExperts<T>(to);
  TellHead<T>(to);
  TellGemm<T>(to);
  TellRope<T>(to);
  TellJitter<T>(to);
  TellAdd<T>(to);
}

// What is fp32 whatever activations are.
void TellRouter(const Teller& to) {
  const int64_t n = to.shapes.tokens(), experts = to.shapes.model.num_experts;
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
  const Call forward(kernels::RouterForwardArgs{.shape = shape});
  to.Tell({"soft router", "router", "fp32", text, 0,
           8 * Real(n * experts) + 8 * Real(slots) + 12 * Real(n)},
          forward, device::RouterForward);
  const Call backward(
      kernels::RouterBackwardArgs{.shape = shape,
                                  .scores = forward.args.scores,
                                  .soft_weights = forward.args.soft_weights,
                                  .root = forward.args.root,
                                  .selected = forward.args.selected});
  to.Tell({"soft router, backward", "router", "fp32", text, 0,
           8 * Real(n * experts) + 8 * Real(slots) + 8 * Real(n)},
          backward, device::RouterBackward);
}

// What follows from the router's choice, for tokens with two experts each.
void TellRouting(const Teller& to) {
  const Shapes& shapes = to.shapes;
  const int64_t n = shapes.tokens(), experts = shapes.model.num_experts;
  const int64_t slots = n * shapes.active;
  const std::string shape =
      fmt::format("{}x{} of {}", n, shapes.active, experts);
  const EvenPlan even(shapes);
  std::vector<int32_t> of_tokens(static_cast<size_t>(slots));
  {
    // The experts of each token, in the ascending order in which they come.
    std::vector<int64_t> next(static_cast<size_t>(n));
    for (int64_t e = 0; e < experts; ++e) {
      for (int64_t row = even.offsets[e]; row < even.offsets[e + 1]; ++row) {
        const int32_t token = even.row_token[row];
        of_tokens[token * shapes.active + next[token]++] =
            static_cast<int32_t>(e);
      }
    }
  }
  const DeviceArray<int32_t> selected(of_tokens),
      num_active(std::vector<int32_t>(static_cast<size_t>(n),
                                      static_cast<int32_t>(shapes.active)));
  const Call plan(kernels::BuildRoutePlanArgs{.num_tokens = n,
                                              .num_experts = experts,
                                              .max_active = shapes.active,
                                              .num_active = num_active.data(),
                                              .selected = selected.data()});
  to.Tell({"route plan", "route_plan", "fp32", shape, 0, 20 * Real(slots)},
          plan, device::BuildRoutePlan);
  const DeviceArray<float> d_gates(slots);
  to.Tell(
      {"gradients of gates", "route_plan", "fp32", shape, 0, 12 * Real(slots)},
      [&] {
        device::GatherGateGradients(
            kernels::GatherGateGradientsArgs{.num_tokens = n,
                                             .max_active = shapes.active,
                                             .token_rows = even.plan.token_rows,
                                             .d_row_gate = plan.args.row_gate,
                                             .d_gates = d_gates.data()},
            to.queue.stream());
      });
  to.Tell({"counts", "routing_counts", "fp32", shape, 0,
           4 * Real(n) + 4 * Real(slots)},
          Call(kernels::RoutingCountsArgs{.num_tokens = n,
                                          .num_experts = experts,
                                          .max_active = shapes.active,
                                          .has_cutoff = true,
                                          .cutoff = 0.5f,
                                          .num_active = num_active.data()},
               {"scores", "bad_score", "bad_value"}),
          device::RoutingCounts);
  to.Tell({"noise of scores", "logit_noise", "fp32",
           fmt::format("{}x{}", n, experts), 0, 8 * Real(n * experts)},
          Call(kernels::LogitNoiseArgs{
              .num_tokens = n, .num_experts = experts, .sigma = 0.01}),
          device::LogitNoise);
  to.Tell({"auxiliary losses", "balance_loss", "fp32",
           fmt::format("{}", experts), 0, 20 * Real(experts)},
          Call(kernels::BalanceLossArgs{.num_tokens = n,
                                        .num_experts = experts,
                                        .aux_loss_coeff = 0.01,
                                        .z_loss_coeff = 0.001,
                                        .group_scale = 1}),
          device::BalanceLoss);
  const int64_t layers = shapes.model.num_layers;
  to.Tell({"gradient of the budget", "budget", "fp32",
           fmt::format("{}", layers), 0, 20 * Real(layers)},
          Call(kernels::BudgetGradientArgs{.num_layers = layers,
                                           .spare_budget = 1}),
          device::BudgetGradient);
}

void TellParameters(const Teller& to) {
  const int64_t size = to.shapes.parameters;
  const DeviceArray<float> second(size);
  device::ClearOnDevice(second.data(), static_cast<size_t>(second.bytes()),
                        to.queue.stream());
  const std::string shape = fmt::format("{}", size);
  const Call update(kernels::AdamWArgs{.size = size,
                                       .learning_rate = 1e-3f,
                                       .beta1 = 0.9f,
                                       .beta2 = 0.95f,
                                       .epsilon = 1e-8f,
                                       .weight_decay = 0.01f,
                                       .bias1 = 10,
                                       .bias2 = 20,
                                       .gradient_scale = 1,
                                       .second_moment = second.data()});
  to.Tell({"adamw", "adamw", "fp32", shape, 0, 28 * Real(size)}, update,
          device::AdamW);
  to.Tell(
      {"sum of squares", "sum_of_squares", "fp32", shape, 0, 4 * Real(size)},
      Call(kernels::SumOfSquaresArgs{.size = size, .x = update.args.gradient}),
      device::SumOfSquares);
  to.Tell({"to bf16", "cast", "bf16", shape, 0, 6 * Real(size)},
          Call(kernels::CastToBf16Args{.size = size,
                                       .from = update.args.parameter}),
          device::CastToBf16);
  to.Tell(
      {"to float", "cast", "bf16", shape, 0, 6 * Real(size)},
      Call(kernels::CastToFloatArgs{.size = size, .to = update.args.parameter}),
      device::CastToFloat);
}

}  // namespace

bool TellTimes(const StageContext& context) {
  const Shapes shapes = TheShapes();
  const auto queue =
      device::MakeQueue(device::DeviceStream(), shapes.workspace);
  const Teller to = {context, shapes, *queue};
  TellRouter(to);
  TellRouting(to);
  TellParameters(to);
  TellLayers<Bf16>(to);
  TellLayers<float>(to);
  return true;
}

}  // namespace softmoe::gpu
