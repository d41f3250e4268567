// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/implementations/mirrored_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

// The size of the canaries on both sides of an array: the alignment of
// cudaMalloc.
constexpr size_t kGuard = 256;
constexpr unsigned char kCanary = 0xad;

// The arrays of one call.
class Mirror {
 public:
  explicit Mirror(const DeviceMemory& memory) : memory_(memory) {}
  ~Mirror() {
    for (const Array& array : arrays_) memory_.free(array.device);
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Replaces a host pointer to `size` elements by one to its copy on the
  // device; null stays null. The kernel must not write to what is const.
  template <typename T>
  void Copy(const char* name, T*& pointer, int64_t size) {
    if (pointer == nullptr) return;
    constexpr bool kWritten = !std::is_const_v<T>;
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    Array array{.name = name, .bytes = bytes};
    array.content.assign(bytes + 2 * kGuard, kCanary);
    if (bytes > 0) std::memcpy(&array.content[kGuard], pointer, bytes);
    if constexpr (kWritten) array.host = pointer;
    array.device =
        static_cast<unsigned char*>(memory_.allocate(array.content.size()));
    arrays_.push_back(array);
    memory_.copy(array.device, array.content.data(), array.content.size());
    pointer = reinterpret_cast<T*>(array.device + kGuard);
  }

  // To be called after the kernel: copies outputs to the host.
  void TakeBack() {
    for (const Array& array : arrays_) {
      std::vector<unsigned char> now(array.content.size());
      memory_.copy(now.data(), array.device, now.size());
      const auto changed = [&](size_t begin, size_t end) {
        return !std::equal(now.begin() + begin, now.begin() + end,
                           array.content.begin() + begin);
      };
      const size_t end = kGuard + array.bytes;
      if (changed(0, kGuard) || changed(end, now.size())) {
        throw NumericsError(fmt::format(
            "{}: written {} on the device", array.name,
            changed(0, kGuard) ? "before the beginning" : "past the end"));
      }
      if (array.host == nullptr) {
        if (!changed(kGuard, end)) continue;
        throw NumericsError(
            fmt::format("{}: an input, written to on the device", array.name));
      }
      if (array.bytes > 0) {
        std::memcpy(array.host, &now[kGuard], array.bytes);
      }
    }
  }

 private:
  struct Array {
    const char* name;
    size_t bytes;                             // without the canaries
    std::vector<unsigned char> content = {};  // as it was sent
    void* host = nullptr;                     // outputs
    unsigned char* device = nullptr;
  };

  const DeviceMemory& memory_;
  std::vector<Array> arrays_;
};

void CopyArrays(Mirror& mirror, kernels::RouterForwardArgs& a) {
  const int64_t n = a.shape.num_tokens, e = a.shape.num_experts;
  const int64_t slots = n * a.shape.max_active;
  mirror.Copy("scores", a.scores, n * e);
  mirror.Copy("soft_weights", a.soft_weights, n * e);
  mirror.Copy("root", a.root, 2 * n);
  mirror.Copy("num_active", a.num_active, n);
  mirror.Copy("selected", a.selected, slots);
  mirror.Copy("gates", a.gates, slots);
  mirror.Copy("probability_sums", a.probability_sums, e);
  mirror.Copy("balance_counts", a.balance_counts, e);
  mirror.Copy("active_counts", a.active_counts, e);
  mirror.Copy("z_sum", a.z_sum, 1);
  mirror.Copy("bad_score", a.bad_score, 1);
  mirror.Copy("scratch", a.scratch, kernels::RouterScratch(n, e));
}

void CopyArrays(Mirror& mirror, kernels::RouterBackwardArgs& a) {
  const int64_t n = a.shape.num_tokens, e = a.shape.num_experts;
  const int64_t slots = n * a.shape.max_active;
  mirror.Copy("scores", a.scores, n * e);
  mirror.Copy("soft_weights", a.soft_weights, n * e);
  mirror.Copy("root", a.root, 2 * n);
  mirror.Copy("selected", a.selected, slots);
  mirror.Copy("d_gates", a.d_gates, slots);
  mirror.Copy("d_probability", a.d_probability, e);
  mirror.Copy("d_scores", a.d_scores, n * e);
  mirror.Copy("d_mean_active", a.d_mean_active, 1);
  mirror.Copy("scratch", a.scratch, kernels::RouterScratch(n, e));
}

template <typename Activation>
void CopyArrays(Mirror& mirror, kernels::RmsNormForwardArgsOf<Activation>& a) {
  mirror.Copy("x", a.x, a.num_tokens * a.d_model);
  mirror.Copy("weight", a.weight, a.d_model);
  mirror.Copy("y", a.y, a.num_tokens * a.d_model);
  mirror.Copy("rstd", a.rstd, a.num_tokens);
}

template <typename Activation>
void CopyArrays(Mirror& mirror, kernels::RmsNormBackwardArgsOf<Activation>& a) {
  mirror.Copy("x", a.x, a.num_tokens * a.d_model);
  mirror.Copy("weight", a.weight, a.d_model);
  mirror.Copy("rstd", a.rstd, a.num_tokens);
  mirror.Copy("d_y", a.d_y, a.num_tokens * a.d_model);
  mirror.Copy("d_x", a.d_x, a.num_tokens * a.d_model);
  mirror.Copy("d_weight", a.d_weight, a.d_model);
  mirror.Copy("scratch", a.scratch,
              kernels::RmsNormScratch(a.num_tokens, a.d_model));
}

void CopyArrays(Mirror& mirror, kernels::AdamWArgs& a) {
  mirror.Copy("gradient", a.gradient, a.size);
  mirror.Copy("parameter", a.parameter, a.size);
  mirror.Copy("first_moment", a.first_moment, a.size);
  mirror.Copy("second_moment", a.second_moment, a.size);
}

template <typename Operand, typename Result>
void CopyArrays(Mirror& mirror, kernels::GemmArgsOf<Operand, Result>& a) {
  mirror.Copy("a", a.a, (a.transpose_a ? a.k : a.m) * a.lda);
  mirror.Copy("b", a.b, (a.transpose_b ? a.n : a.k) * a.ldb);
  mirror.Copy("c", a.c, a.m * a.ldc);
}

void CopyArrays(Mirror& mirror, kernels::RoutePlan& plan) {
  mirror.Copy("expert_offsets", plan.expert_offsets, plan.num_experts + 1);
  mirror.Copy("row_token", plan.row_token, plan.num_routed);
  mirror.Copy("row_gate", plan.row_gate, plan.num_routed);
  mirror.Copy("token_rows", plan.token_rows, plan.num_tokens * plan.max_active);
}

// Shared by the experts' forward and backward passes.
template <typename Args>
void CopyExperts(Mirror& mirror, Args& a) {
  const int64_t rows = a.plan.num_routed, d = a.d_model, f = a.d_ffn;
  const int64_t tokens = a.plan.num_tokens, experts = a.plan.num_experts;
  CopyArrays(mirror, a.plan);
  mirror.Copy("hidden", a.hidden, tokens * d);
  mirror.Copy("gate_up_weight", a.gate_up_weight, experts * d * 2 * f);
  mirror.Copy("down_weight", a.down_weight, experts * f * d);
  mirror.Copy("gate_up", a.gate_up, rows * 2 * f);
  mirror.Copy("activation", a.activation, rows * f);
}

template <typename Activation>
void CopyArrays(Mirror& mirror, kernels::ExpertForwardArgsOf<Activation>& a) {
  CopyExperts(mirror, a);
  mirror.Copy("row_output", a.row_output, a.plan.num_routed * a.d_model);
  mirror.Copy("out", a.out, a.plan.num_tokens * a.d_model);
}

template <typename Activation>
void CopyArrays(Mirror& mirror, kernels::ExpertBackwardArgsOf<Activation>& a) {
  const int64_t rows = a.plan.num_routed, d = a.d_model, f = a.d_ffn;
  const int64_t tokens = a.plan.num_tokens, experts = a.plan.num_experts;
  CopyExperts(mirror, a);
  mirror.Copy("d_out", a.d_out, tokens * d);
  mirror.Copy("d_gate_up", a.d_gate_up, rows * 2 * f);
  mirror.Copy("d_row_hidden", a.d_row_hidden, rows * d);
  mirror.Copy("d_row_gate", a.d_row_gate, rows);
  mirror.Copy("d_hidden", a.d_hidden, tokens * d);
  mirror.Copy("d_gate_up_weight", a.d_gate_up_weight, experts * d * 2 * f);
  mirror.Copy("d_down_weight", a.d_down_weight, experts * f * d);
}

// The number of scratch floats, by the type of out.
template <typename Args>
int64_t ScratchOf(const Args& a) {
  constexpr bool kFloats = std::is_convertible_v<decltype(a.out), const float*>;
  return kFloats ? kernels::AttentionScratch(a.num_sequences, a.sequence_length,
                                             a.query_block)
                 : kernels::AttentionScratchForBf16(a.num_sequences,
                                                    a.sequence_length,
                                                    a.head_dim, a.query_block);
}

// Shared by attention's forward and backward passes.
template <typename Args>
void CopyAttention(Mirror& mirror, Args& a) {
  const int64_t tokens = a.num_sequences * a.sequence_length;
  const int64_t width = a.num_heads * a.head_dim;
  mirror.Copy("qkv", a.qkv, tokens * 3 * width);
  mirror.Copy("out", a.out, tokens * width);
  mirror.Copy("log_sum_exp", a.log_sum_exp, tokens * a.num_heads);
  mirror.Copy("scratch", a.scratch, ScratchOf(a));
}

template <typename Activation>
void CopyArrays(Mirror& mirror,
                kernels::AttentionForwardArgsOf<Activation>& a) {
  CopyAttention(mirror, a);
}

template <typename Activation>
void CopyArrays(Mirror& mirror,
                kernels::AttentionBackwardArgsOf<Activation>& a) {
  CopyAttention(mirror, a);
  const int64_t tokens = a.num_sequences * a.sequence_length;
  const int64_t width = a.num_heads * a.head_dim;
  mirror.Copy("d_out", a.d_out, tokens * width);
  mirror.Copy("d_qkv", a.d_qkv, tokens * 3 * width);
}

template <typename Activation>
void CopyArrays(Mirror& mirror,
                kernels::HeadCrossEntropyArgsOf<Activation>& a) {
  const int64_t n = a.num_tokens, d = a.d_model, v = a.vocab_size;
  mirror.Copy("hidden", a.hidden, n * d);
  mirror.Copy("head_weight", a.head_weight, v * d);
  mirror.Copy("targets", a.targets, n);
  mirror.Copy("token_loss", a.token_loss, n);
  mirror.Copy("d_hidden", a.d_hidden, n * d);
  mirror.Copy("d_head_weight", a.d_head_weight, v * d);
  mirror.Copy("loss_sum", a.loss_sum, 1);
  mirror.Copy("logits", a.logits, a.chunk_tokens * v);
  mirror.Copy("d_logits", a.d_logits, a.chunk_tokens * v);
}

void CopyArrays(Mirror& mirror, kernels::SumOfSquaresArgs& a) {
  mirror.Copy("x", a.x, a.size);
  mirror.Copy("result", a.result, 1);
  mirror.Copy("scratch", a.scratch, kernels::SumOfSquaresScratch(a.size));
}

template <typename Activation>
void CopyArrays(Mirror& mirror,
                kernels::EmbeddingForwardArgsOf<Activation>& a) {
  // As many rows as the ids say.
  int32_t num_rows = 0;
  for (int64_t t = 0; t < a.num_tokens; ++t) {
    num_rows = std::max(num_rows, a.ids[t] + 1);
  }
  mirror.Copy("ids", a.ids, a.num_tokens);
  mirror.Copy("table", a.table, num_rows * a.d_model);
  mirror.Copy("out", a.out, a.num_tokens * a.d_model);
}

template <typename Activation>
void CopyArrays(Mirror& mirror,
                kernels::EmbeddingBackwardArgsOf<Activation>& a) {
  mirror.Copy("ids", a.ids, a.num_tokens);
  mirror.Copy("d_out", a.d_out, a.num_tokens * a.d_model);
  mirror.Copy("d_table", a.d_table, a.vocab_size * a.d_model);
  mirror.Copy("scratch", a.scratch,
              kernels::EmbeddingDeviceScratch(a.num_tokens));
}

template <typename X, typename Y>
void CopyArrays(Mirror& mirror, kernels::AddArgsOf<X, Y>& a) {
  mirror.Copy("x", a.x, a.size);
  mirror.Copy("y", a.y, a.size);
}

template <typename Activation>
void CopyArrays(Mirror& mirror, kernels::RopeArgsOf<Activation>& a) {
  const int64_t angles = a.sequence_length * (a.head_dim / 2);
  const int64_t tokens = a.num_sequences * a.sequence_length;
  mirror.Copy("cosine", a.cosine, angles);
  mirror.Copy("sine", a.sine, angles);
  mirror.Copy("qkv", a.qkv, tokens * 3 * a.num_heads * a.head_dim);
}

template <typename X, typename Y>
void CopyArrays(Mirror& mirror, kernels::InputJitterArgsOf<X, Y>& a) {
  mirror.Copy("x", a.x, a.num_tokens * a.d_model);
  mirror.Copy("y", a.y, a.num_tokens * a.d_model);
}

void CopyArrays(Mirror& mirror, kernels::LogitNoiseArgs& a) {
  mirror.Copy("scores", a.scores, a.num_tokens * a.num_experts);
}

void CopyArrays(Mirror& mirror, kernels::BuildRoutePlanArgs& a) {
  const int64_t slots = a.num_tokens * a.max_active;
  mirror.Copy("num_active", a.num_active, a.num_tokens);
  mirror.Copy("selected", a.selected, slots);
  mirror.Copy("gates", a.gates, slots);
  mirror.Copy("expert_offsets", a.expert_offsets, a.num_experts + 1);
  mirror.Copy("row_token", a.row_token, slots);
  mirror.Copy("row_gate", a.row_gate, slots);
  mirror.Copy("token_rows", a.token_rows, slots);
  mirror.Copy("scratch", a.scratch,
              kernels::RoutePlanScratch(a.num_tokens, a.num_experts));
}

void CopyArrays(Mirror& mirror, kernels::GatherGateGradientsArgs& a) {
  const int64_t slots = a.num_tokens * a.max_active;
  // As many rows as the tokens have.
  const int64_t rows = std::count_if(a.token_rows, a.token_rows + slots,
                                     [](int32_t row) { return row >= 0; });
  mirror.Copy("token_rows", a.token_rows, slots);
  mirror.Copy("d_row_gate", a.d_row_gate, rows);
  mirror.Copy("d_gates", a.d_gates, slots);
}

void CopyArrays(Mirror& mirror, kernels::RoutingCountsArgs& a) {
  mirror.Copy("num_active", a.num_active, a.num_tokens);
  mirror.Copy("gates", a.gates, a.num_tokens * a.max_active);
  mirror.Copy("active_histogram", a.active_histogram, a.num_experts + 1);
  mirror.Copy("below_cutoff", a.below_cutoff, 1);
  mirror.Copy("scores", a.scores, a.num_tokens * a.num_experts);
  mirror.Copy("bad_score", a.bad_score, 1);
  mirror.Copy("bad_value", a.bad_value, 1);
}

void CopyArrays(Mirror& mirror, kernels::BalanceLossArgs& a) {
  mirror.Copy("balance_counts", a.balance_counts, a.num_experts);
  mirror.Copy("probability_sums", a.probability_sums, a.num_experts);
  mirror.Copy("z_sum", a.z_sum, 1);
  mirror.Copy("load_balance_loss", a.load_balance_loss, 1);
  mirror.Copy("z_loss", a.z_loss, 1);
  mirror.Copy("d_probability", a.d_probability, a.num_experts);
}

void CopyArrays(Mirror& mirror, kernels::BudgetGradientArgs& a) {
  mirror.Copy("shares", a.shares, a.num_layers);
  mirror.Copy("d_mean_active", a.d_mean_active, a.num_layers);
  mirror.Copy("d_budget_logits", a.d_budget_logits, a.num_layers);
}

void CopyArrays(Mirror& mirror, kernels::CastToBf16Args& a) {
  mirror.Copy("from", a.from, a.size);
  mirror.Copy("to", a.to, a.size);
}

void CopyArrays(Mirror& mirror, kernels::CastToFloatArgs& a) {
  mirror.Copy("from", a.from, a.size);
  mirror.Copy("to", a.to, a.size);
}

template <typename Args>
std::function<void(const Args&)> Mirrored(
    std::function<void(const Args&)> device, const DeviceMemory& memory) {
  return [device, memory](const Args& args) {
    Mirror mirror(memory);
    Args copies = args;
    CopyArrays(mirror, copies);
    device(copies);
    mirror.TakeBack();
  };
}

}  // namespace

template <typename Activation>
RowKernelsOf<Activation> MirroredKernels(const RowKernelsOf<Activation>& device,
                                         const DeviceMemory& memory) {
  return {
      .router_forward = Mirrored(device.router_forward, memory),
      .router_backward = Mirrored(device.router_backward, memory),
      .rmsnorm_forward = Mirrored(device.rmsnorm_forward, memory),
      .rmsnorm_backward = Mirrored(device.rmsnorm_backward, memory),
      .adamw = Mirrored(device.adamw, memory),
      .gemm = Mirrored(device.gemm, memory),
      .expert_forward = Mirrored(device.expert_forward, memory),
      .expert_backward = Mirrored(device.expert_backward, memory),
      .attention_forward = Mirrored(device.attention_forward, memory),
      .attention_backward = Mirrored(device.attention_backward, memory),
      .head_cross_entropy = Mirrored(device.head_cross_entropy, memory),
      .sum_of_squares = Mirrored(device.sum_of_squares, memory),
      .embedding_forward = Mirrored(device.embedding_forward, memory),
      .embedding_backward = Mirrored(device.embedding_backward, memory),
      .add = Mirrored(device.add, memory),
      .rope = Mirrored(device.rope, memory),
      .input_jitter = Mirrored(device.input_jitter, memory),
      .input_jitter_backward = Mirrored(device.input_jitter_backward, memory),
      .logit_noise = Mirrored(device.logit_noise, memory),
      .build_route_plan = Mirrored(device.build_route_plan, memory),
      .gather_gate_gradients = Mirrored(device.gather_gate_gradients, memory),
      .routing_counts = Mirrored(device.routing_counts, memory),
      .balance_loss = Mirrored(device.balance_loss, memory),
      .budget_gradient = Mirrored(device.budget_gradient, memory),
      .cast_to_bf16 = Mirrored(device.cast_to_bf16, memory),
      .cast_to_float = Mirrored(device.cast_to_float, memory),
  };
}

template RowKernels MirroredKernels(const RowKernels&, const DeviceMemory&);
template Bf16Kernels MirroredKernels(const Bf16Kernels&, const DeviceMemory&);

}  // namespace softmoe::verify
