// SPDX-License-Identifier: Apache-2.0
//
// Times each operation at the paper's shapes, with its minimum of computing and
// memory traffic: each operand read once, each result written once. Scratch and
// recomputation do not count.
#include <fmt/format.h>

#include <memory>

#include "core/errors.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/noise_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/cuda/row_kernels.h"
#include "property_tests/gpu/device_array.h"
#include "property_tests/gpu/device_stages.h"
#include "property_tests/gpu/paper_shapes.h"
#include "property_tests/testing/random_data.h"

namespace softmoe::gpu {
namespace {

using kernels::Bf16;

// A timed call and its minimal requirements.
struct Timed {
  std::string name, operation, precision, shape;
  double flops, bytes;
};

void Tell(const StageContext& context, const Timed& timed,
          const std::function<void()>& launch) {
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

// Times the operations whose activations have this type.
template <typename T>
class Times {
 public:
  Times(const StageContext& context, const Shapes& shapes,
        kernels::Queue& queue)
      : context_(context), shapes_(shapes), queue_(queue) {}

  void TellAll() {
    TellRmsNorm();
    TellEmbedding();
    TellAttention();
    TellExperts();
    TellHead();
    TellGemm();
    TellRope();
    TellJitter();
    TellAdd();
  }

 private:
  static constexpr double kSize = sizeof(T);

  void TellOne(const std::string& name, const std::string& operation,
               const std::string& shape, double flops, double bytes,
               const std::function<void()>& launch) {
    Tell(context_,
         {name, operation, kSize == 2 ? "bf16" : "fp32", shape, flops, bytes},
         launch);
  }

  CUstream_st* stream() const { return queue_.stream(); }

  void TellRmsNorm() {
    const int64_t n = shapes_.tokens(), d = shapes_.model.d_model;
    const DeviceArray<T> x(n * d), y(n * d), d_y(n * d), d_x(n * d);
    const DeviceArray<float> weight(d), rstd(n), d_weight(d),
        scratch(kernels::RmsNormScratch(n, d));
    const std::string shape = fmt::format("{}x{}", n, d);
    TellOne("rmsnorm", "rmsnorm", shape, 0, 2 * kSize * Real(n * d), [&] {
      device::RmsNormForward(
          kernels::RmsNormForwardArgsOf<T>{.num_tokens = n,
                                           .d_model = d,
                                           .epsilon = 1e-5f,
                                           .x = x.data(),
                                           .weight = weight.data(),
                                           .y = y.data(),
                                           .rstd = rstd.data()},
          stream());
    });
    TellOne("rmsnorm, backward", "rmsnorm", shape, 0, 4 * kSize * Real(n * d),
            [&] {
              device::RmsNormBackward(
                  kernels::RmsNormBackwardArgsOf<T>{.num_tokens = n,
                                                    .d_model = d,
                                                    .x = x.data(),
                                                    .weight = weight.data(),
                                                    .rstd = rstd.data(),
                                                    .d_y = d_y.data(),
                                                    .d_x = d_x.data(),
                                                    .d_weight = d_weight.data(),
                                                    .scratch = scratch.data()},
                  stream());
            });
  }

  std::vector<int32_t> Ids() const {
    return property_tests::RandomIds(shapes_.tokens(), shapes_.model.vocab_size,
                                     1, 1);
  }

  void TellEmbedding() {
    const int64_t n = shapes_.tokens(), d = shapes_.model.d_model,
                  vocab = shapes_.model.vocab_size;
    const DeviceArray<int32_t> ids(Ids()),
        scratch(kernels::EmbeddingDeviceScratch(n));
    const DeviceArray<float> table(vocab * d);
    const DeviceArray<T> out(n * d);
    const std::string shape = fmt::format("{}x{} of {}", n, d, vocab);
    TellOne("embedding", "embedding", shape, 0, (4 + kSize) * Real(n * d), [&] {
      device::EmbeddingForward(
          kernels::EmbeddingForwardArgsOf<T>{.num_tokens = n,
                                             .d_model = d,
                                             .ids = ids.data(),
                                             .table = table.data(),
                                             .out = out.data()},
          stream());
    });
    TellOne(
        "embedding, backward", "embedding", shape, 0,
        kSize * Real(n * d) + 4 * Real(vocab * d), [&] {
          device::EmbeddingBackward(
              kernels::EmbeddingBackwardArgsOf<T>{.num_tokens = n,
                                                  .d_model = d,
                                                  .vocab_size = vocab,
                                                  .ids = ids.data(),
                                                  .d_out = out.data(),
                                                  .d_table = table.data(),
                                                  .scratch = scratch.data()},
              stream());
        });
  }

  void TellAttention() {
    const auto& model = shapes_.model;
    const int64_t n = shapes_.tokens(), d = model.d_model,
                  sequences = shapes_.sequences, length = model.sequence_length,
                  heads = model.num_heads;
    const int64_t block = shapes_.query_block();
    const DeviceArray<T> qkv(n * 3 * d), out(n * d), d_out(n * d),
        d_qkv(n * 3 * d);
    const DeviceArray<float> log_sum_exp(sequences * heads * length),
        scratch(kernels::AttentionScratchForBf16(sequences, length,
                                                 model.head_dim(), block));
    const std::string shape =
        fmt::format("{} sequences of {}, {} heads of {}", sequences, length,
                    heads, model.head_dim());
    const double flops = 2 * Real(n * d) * Real(length + 1);  // causal
    TellOne("attention", "attention", shape, flops, 4 * kSize * Real(n * d),
            [&] {
              device::AttentionForward(
                  kernels::AttentionForwardArgsOf<T>{
                      .num_sequences = sequences,
                      .sequence_length = length,
                      .num_heads = heads,
                      .head_dim = model.head_dim(),
                      .qkv = qkv.data(),
                      .out = out.data(),
                      .log_sum_exp = log_sum_exp.data(),
                      .query_block = block,
                      .scratch = scratch.data()},
                  queue_);
            });
    TellOne("attention, backward", "attention", shape, 2 * flops,
            8 * kSize * Real(n * d), [&] {
              device::AttentionBackward(
                  kernels::AttentionBackwardArgsOf<T>{
                      .num_sequences = sequences,
                      .sequence_length = length,
                      .num_heads = heads,
                      .head_dim = model.head_dim(),
                      .qkv = qkv.data(),
                      .out = out.data(),
                      .log_sum_exp = log_sum_exp.data(),
                      .d_out = d_out.data(),
                      .d_qkv = d_qkv.data(),
                      .query_block = block,
                      .scratch = scratch.data()},
                  queue_);
            });
  }

  void TellExperts() {
    const auto& model = shapes_.model;
    const int64_t n = shapes_.tokens(), d = model.d_model, f = model.d_ffn,
                  experts = model.num_experts, routed = shapes_.routed();
    const EvenPlan even(shapes_);
    const DeviceArray<T> hidden(n * d), gate_up_weight(experts * d * 2 * f),
        down_weight(experts * f * d), gate_up(routed * 2 * f), rows(routed * d),
        activation(routed * f), out(n * d);
    const std::string shape =
        fmt::format("{} rows, {} experts of {}x{}", routed, experts, d, f);
    const double flops = 6 * Real(routed * d) * Real(f);
    const double weights = 3 * Real(experts * d * f);
    TellOne("experts", "experts", shape, flops,
            kSize * (weights + 3 * Real(n * d) + 2 * Real(routed * f)), [&] {
              device::ExpertForward(
                  kernels::ExpertForwardArgsOf<T>{
                      .plan = even.plan,
                      .d_model = d,
                      .d_ffn = f,
                      .hidden = hidden.data(),
                      .gate_up_weight = gate_up_weight.data(),
                      .down_weight = down_weight.data(),
                      .gate_up = gate_up.data(),
                      .row_output = rows.data(),
                      .out = out.data(),
                      .activation = activation.data(),
                      .host_offsets = even.offsets.data()},
                  queue_);
            });
    const DeviceArray<T> d_gate_up(routed * 2 * f), d_hidden(n * d);
    const DeviceArray<float> d_row_gate(routed),
        d_gate_up_weight(experts * d * 2 * f), d_down_weight(experts * f * d);
    TellOne("experts, backward", "experts", shape, 2 * flops,
            (kSize + 4) * weights +
                kSize * (3 * Real(n * d) + 2 * Real(routed * f)),
            [&] {
              device::ExpertBackward(
                  kernels::ExpertBackwardArgsOf<T>{
                      .plan = even.plan,
                      .d_model = d,
                      .d_ffn = f,
                      .hidden = hidden.data(),
                      .gate_up_weight = gate_up_weight.data(),
                      .down_weight = down_weight.data(),
                      .gate_up = gate_up.data(),
                      .d_out = out.data(),
                      .d_gate_up = d_gate_up.data(),
                      .d_row_hidden = rows.data(),
                      .activation = activation.data(),
                      .d_row_gate = d_row_gate.data(),
                      .d_hidden = d_hidden.data(),
                      .d_gate_up_weight = d_gate_up_weight.data(),
                      .d_down_weight = d_down_weight.data(),
                      .host_offsets = even.offsets.data()},
                  queue_);
            });
  }

  void TellHead() {
    const int64_t n = shapes_.tokens(), d = shapes_.model.d_model,
                  vocab = shapes_.model.vocab_size;
    const int64_t chunk = shapes_.head_chunk();
    const DeviceArray<T> hidden(n * d), weight(vocab * d), d_hidden(n * d),
        d_logits(chunk * vocab);
    const DeviceArray<int32_t> targets(Ids());
    const DeviceArray<float> token_loss(n), d_weight(vocab * d),
        logits(chunk * vocab);
    TellOne("head and loss, with gradients", "lm_head",
            fmt::format("{}x{}, vocabulary of {}", n, d, vocab),
            6 * Real(n * d) * Real(vocab),
            kSize * (2 * Real(n * d) + Real(vocab * d)) + 4 * Real(vocab * d),
            [&] {
              device::HeadCrossEntropy(
                  kernels::HeadCrossEntropyArgsOf<T>{
                      .num_tokens = n,
                      .d_model = d,
                      .vocab_size = vocab,
                      .hidden = hidden.data(),
                      .head_weight = weight.data(),
                      .targets = targets.data(),
                      .token_loss = token_loss.data(),
                      .grad_scale = 1e-5f,
                      .d_hidden = d_hidden.data(),
                      .d_head_weight = d_weight.data(),
                      .chunk_tokens = chunk,
                      .logits = logits.data(),
                      .d_logits = d_logits.data()},
                  queue_);
            });
  }

  void TellGemm() {
    const int64_t n = shapes_.tokens(), d = shapes_.model.d_model;
    const DeviceArray<T> a(n * d), b(3 * d * d), c(n * 3 * d);
    TellOne("qkv product", "gemm", fmt::format("{}x{}x{}", n, 3 * d, d),
            6 * Real(n * d) * Real(d),
            kSize * (4 * Real(n * d) + 3 * Real(d * d)), [&] {
              device::Gemm(kernels::GemmArgsOf<T, T>{.a = a.data(),
                                                     .b = b.data(),
                                                     .c = c.data(),
                                                     .m = n,
                                                     .n = 3 * d,
                                                     .k = d,
                                                     .lda = d,
                                                     .ldb = 3 * d,
                                                     .ldc = 3 * d},
                           queue_);
            });
  }

  void TellRope() {
    const auto& model = shapes_.model;
    const int64_t n = shapes_.tokens(), d = model.d_model;
    const DeviceArray<T> qkv(n * 3 * d);
    const int64_t angles = model.sequence_length * model.head_dim() / 2;
    const DeviceArray<float> cosine(angles), sine(angles);
    TellOne(
        "rope", "rope", fmt::format("{}x{}", n, 2 * d), 0,
        4 * kSize * Real(n * d), [&] {
          device::Rope(
              kernels::RopeArgsOf<T>{.num_sequences = shapes_.sequences,
                                     .sequence_length = model.sequence_length,
                                     .num_heads = model.num_heads,
                                     .head_dim = model.head_dim(),
                                     .cosine = cosine.data(),
                                     .sine = sine.data(),
                                     .qkv = qkv.data()},
              stream());
        });
  }

  void TellJitter() {
    const int64_t n = shapes_.tokens(), d = shapes_.model.d_model;
    const DeviceArray<T> hidden(n * d);
    const DeviceArray<float> router_input(n * d);
    const std::string shape = fmt::format("{}x{}", n, d);
    TellOne("jitter", "jitter", shape, 0, (kSize + 4) * Real(n * d), [&] {
      device::InputJitter(
          kernels::InputJitterArgsOf<T, float>{.num_tokens = n,
                                               .d_model = d,
                                               .first_token = 0,
                                               .key = {},
                                               .amplitude = 0.01,
                                               .x = hidden.data(),
                                               .y = router_input.data()},
          stream());
    });
    TellOne("jitter, backward", "jitter", shape, 0,
            (2 * kSize + 4) * Real(n * d), [&] {
              device::InputJitter(
                  kernels::InputJitterArgsOf<float, T>{.num_tokens = n,
                                                       .d_model = d,
                                                       .first_token = 0,
                                                       .key = {},
                                                       .amplitude = 0.01,
                                                       .x = router_input.data(),
                                                       .y = hidden.data(),
                                                       .accumulate = true},
                  stream());
            });
  }

  void TellAdd() {
    const int64_t size = shapes_.tokens() * shapes_.model.d_model;
    const DeviceArray<float> x(size);
    const DeviceArray<T> y(size);
    TellOne("+=", "add", fmt::format("{}", size), 0,
            (2 * kSize + 4) * Real(size), [&] {
              device::Add(
                  kernels::AddArgsOf<float, T>{
                      .size = size, .x = x.data(), .y = y.data()},
                  stream());
            });
  }

  const StageContext& context_;
  const Shapes& shapes_;
  kernels::Queue& queue_;
};

// Times the router, which is fp32 whatever the activations are.
void TellRouter(const StageContext& context, const Shapes& shapes,
                CUstream_st* stream) {
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
  const DeviceArray<float> scores(n * experts), weights(n * experts),
      root(2 * n), gates(slots), d_gates(slots), d_probability(experts),
      d_scores(n * experts);
  const DeviceArray<int32_t> num_active(n), selected(slots);
  const DeviceArray<double> probability_sums(experts), z_sum(int64_t{1}),
      d_mean_active(int64_t{1}), scratch(kernels::RouterScratch(n, experts));
  const DeviceArray<int64_t> balance_counts(experts), active_counts(experts),
      bad_score(int64_t{1});
  const std::string text =
      fmt::format("{}x{}, at most {}", n, experts, shape.max_active);
  Tell(context,
       {"soft router", "router", "fp32", text, 0,
        8 * Real(n * experts) + 8 * Real(slots) + 12 * Real(n)},
       [&] {
         device::RouterForward(
             kernels::RouterForwardArgs{
                 .shape = shape,
                 .scores = scores.data(),
                 .soft_weights = weights.data(),
                 .root = root.data(),
                 .num_active = num_active.data(),
                 .selected = selected.data(),
                 .gates = gates.data(),
                 .probability_sums = probability_sums.data(),
                 .balance_counts = balance_counts.data(),
                 .active_counts = active_counts.data(),
                 .z_sum = z_sum.data(),
                 .bad_score = bad_score.data(),
                 .scratch = scratch.data()},
             stream);
       });
  Tell(context,
       {"soft router, backward", "router", "fp32", text, 0,
        8 * Real(n * experts) + 8 * Real(slots) + 8 * Real(n)},
       [&] {
         device::RouterBackward(
             kernels::RouterBackwardArgs{.shape = shape,
                                         .scores = scores.data(),
                                         .soft_weights = weights.data(),
                                         .root = root.data(),
                                         .selected = selected.data(),
                                         .d_gates = d_gates.data(),
                                         .d_probability = d_probability.data(),
                                         .z_scale = 0,
                                         .d_scores = d_scores.data(),
                                         .d_mean_active = d_mean_active.data(),
                                         .scratch = scratch.data()},
             stream);
       });
}

// Times the work that follows the router's choice, with two experts per token.
void TellRouting(const StageContext& context, const Shapes& shapes,
                 CUstream_st* stream) {
  const int64_t n = shapes.tokens(), experts = shapes.model.num_experts;
  const int64_t slots = n * shapes.active;
  const auto tell = [&](const char* name, const char* operation,
                        const std::string& shape, double bytes,
                        const std::function<void()>& launch) {
    Tell(context, {name, operation, "fp32", shape, 0, bytes}, launch);
  };
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
                                      static_cast<int32_t>(shapes.active))),
      offsets(experts + 1), row_token(slots), token_rows(slots),
      scratch(kernels::RoutePlanScratch(n, experts));
  const DeviceArray<float> gates(slots), row_gate(slots), scores(n * experts),
      d_probability(experts);
  tell("route plan", "route_plan", shape, 20 * Real(slots), [&] {
    device::BuildRoutePlan(
        kernels::BuildRoutePlanArgs{.num_tokens = n,
                                    .num_experts = experts,
                                    .max_active = shapes.active,
                                    .num_active = num_active.data(),
                                    .selected = selected.data(),
                                    .gates = gates.data(),
                                    .expert_offsets = offsets.data(),
                                    .row_token = row_token.data(),
                                    .row_gate = row_gate.data(),
                                    .token_rows = token_rows.data(),
                                    .scratch = scratch.data()},
        stream);
  });
  tell("gradients of gates", "route_plan", shape, 12 * Real(slots), [&] {
    device::GatherGateGradients(
        kernels::GatherGateGradientsArgs{.num_tokens = n,
                                         .max_active = shapes.active,
                                         .token_rows = even.plan.token_rows,
                                         .d_row_gate = row_gate.data(),
                                         .d_gates = gates.data()},
        stream);
  });
  const DeviceArray<int64_t> histogram(experts + 1), below(int64_t{1}),
      counts(experts);
  tell("counts", "routing_counts", shape, 4 * Real(n) + 4 * Real(slots), [&] {
    device::RoutingCounts(
        kernels::RoutingCountsArgs{.num_tokens = n,
                                   .num_experts = experts,
                                   .max_active = shapes.active,
                                   .has_cutoff = true,
                                   .cutoff = 0.5f,
                                   .num_active = num_active.data(),
                                   .gates = gates.data(),
                                   .active_histogram = histogram.data(),
                                   .below_cutoff = below.data()},
        stream);
  });
  tell("noise of scores", "logit_noise", fmt::format("{}x{}", n, experts),
       8 * Real(n * experts), [&] {
         device::LogitNoise(kernels::LogitNoiseArgs{.num_tokens = n,
                                                    .num_experts = experts,
                                                    .first_token = 0,
                                                    .key = {},
                                                    .sigma = 0.01,
                                                    .scores = scores.data()},
                            stream);
       });
  const DeviceArray<double> sums(experts), one(int64_t{1}), loss(int64_t{1}),
      z_loss(int64_t{1});
  tell("auxiliary losses", "balance_loss", fmt::format("{}", experts),
       20 * Real(experts), [&] {
         device::BalanceLoss(
             kernels::BalanceLossArgs{.num_tokens = n,
                                      .num_experts = experts,
                                      .aux_loss_coeff = 0.01,
                                      .z_loss_coeff = 0.001,
                                      .group_scale = 1,
                                      .balance_counts = counts.data(),
                                      .probability_sums = sums.data(),
                                      .z_sum = one.data(),
                                      .load_balance_loss = loss.data(),
                                      .z_loss = z_loss.data(),
                                      .d_probability = d_probability.data()},
             stream);
       });
  const int64_t layers = shapes.model.num_layers;
  const DeviceArray<double> shares(layers), d_mean_active(layers);
  const DeviceArray<float> d_budget_logits(layers);
  tell("gradient of the budget", "budget", fmt::format("{}", layers),
       20 * Real(layers), [&] {
         device::BudgetGradient(
             kernels::BudgetGradientArgs{
                 .num_layers = layers,
                 .spare_budget = 1,
                 .shares = shares.data(),
                 .d_mean_active = d_mean_active.data(),
                 .d_budget_logits = d_budget_logits.data()},
             stream);
       });
}

void TellParameters(const StageContext& context, const Shapes& shapes,
                    CUstream_st* stream) {
  const int64_t size = shapes.parameters;
  const DeviceArray<float> gradient(size), parameter(size), first(size),
      second(size);
  const DeviceArray<Bf16> rounded(size);
  device::ClearOnDevice(second.data(), static_cast<size_t>(second.bytes()),
                        stream);
  const DeviceArray<double> result(int64_t{1}),
      scratch(kernels::SumOfSquaresScratch(size));
  const std::string shape = fmt::format("{}", size);
  Tell(context, {"adamw", "adamw", "fp32", shape, 0, 28 * Real(size)}, [&] {
    device::AdamW(kernels::AdamWArgs{.size = size,
                                     .learning_rate = 1e-3f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.95f,
                                     .epsilon = 1e-8f,
                                     .weight_decay = 0.01f,
                                     .bias1 = 10,
                                     .bias2 = 20,
                                     .gradient_scale = 1,
                                     .gradient = gradient.data(),
                                     .parameter = parameter.data(),
                                     .first_moment = first.data(),
                                     .second_moment = second.data()},
                  stream);
  });
  Tell(context,
       {"sum of squares", "sum_of_squares", "fp32", shape, 0, 4 * Real(size)},
       [&] {
         device::SumOfSquares(
             kernels::SumOfSquaresArgs{.size = size,
                                       .x = gradient.data(),
                                       .result = result.data(),
                                       .scratch = scratch.data()},
             stream);
       });
  Tell(context, {"to bf16", "cast", "bf16", shape, 0, 6 * Real(size)}, [&] {
    device::CastToBf16(
        kernels::CastToBf16Args{
            .size = size, .from = parameter.data(), .to = rounded.data()},
        stream);
  });
  Tell(context, {"to float", "cast", "bf16", shape, 0, 6 * Real(size)}, [&] {
    device::CastToFloat(
        kernels::CastToFloatArgs{
            .size = size, .from = rounded.data(), .to = gradient.data()},
        stream);
  });
}

}  // namespace

bool TellTimes(const StageContext& context) {
  const Shapes shapes = TheShapes();
  const auto queue =
      device::MakeQueue(device::DeviceStream(), shapes.workspace);
  TellRouter(context, shapes, queue->stream());
  TellRouting(context, shapes, queue->stream());
  TellParameters(context, shapes, queue->stream());
  Times<Bf16>(context, shapes, *queue).TellAll();
  Times<float>(context, shapes, *queue).TellAll();
  return true;
}

}  // namespace softmoe::gpu
