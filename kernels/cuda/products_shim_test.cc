// SPDX-License-Identifier: Apache-2.0
//
// Products, experts, attention and head on the simulated device: empty sums,
// experts without rows, partial blocks of queries, partial chunks of tokens,
// batches.
#include "kernels/cuda/products.h"
#include "kernels/simt/device/shim_test_support.h"

namespace softmoe::kernels {
namespace {

constexpr int64_t kWorkspace = 1 << 16;

template <typename Operand, typename Result>
void CheckGemm(int64_t m, int64_t n, int64_t k, bool transpose_a,
               bool transpose_b, bool accumulate) {
  const auto a = RandomElements<Operand>(m * k, 1);
  const auto b = RandomElements<Operand>(k * n, 2);
  const auto before = RandomElements<Result>(m * n, 3);
  CheckSchedules("gemm", [&](Outputs& outputs) {
    const auto queue = isa_shim::MakeQueue(outputs.stream(), kWorkspace);
    isa_shim::Gemm(
        {.a = outputs.In(a),
         .b = outputs.In(b),
         .c = accumulate ? outputs.AddCopy(before) : outputs.Add<Result>(m * n),
         .m = m,
         .n = n,
         .k = k,
         .lda = transpose_a ? m : k,
         .ldb = transpose_b ? k : n,
         .ldc = n,
         .transpose_a = transpose_a,
         .transpose_b = transpose_b,
         .accumulate = accumulate},
        *queue);
  });
}

// The rows of a plan, by expert: expert e has tokens e, e + 2, ..., and the
// last one has none.
struct Routed {
  int64_t num_tokens, num_experts;
  std::vector<int32_t> offsets = {0}, row_token, token_rows;
  std::vector<float> row_gate;

  Routed(int64_t num_tokens, int64_t num_experts)
      : num_tokens(num_tokens), num_experts(num_experts) {
    Draws draws(5);
    token_rows.assign(static_cast<size_t>(num_tokens * num_experts), -1);
    std::vector<int64_t> active(static_cast<size_t>(num_tokens), 0);
    for (int64_t e = 0; e < num_experts; ++e) {
      for (int64_t t = e; e + 1 < num_experts && t < num_tokens; t += 2) {
        token_rows[static_cast<size_t>(t * num_experts +
                                       active[static_cast<size_t>(t)]++)] =
            static_cast<int32_t>(row_token.size());
        row_token.push_back(static_cast<int32_t>(t));
        row_gate.push_back(draws.Signed());
      }
      offsets.push_back(static_cast<int32_t>(row_token.size()));
    }
  }
  int64_t num_rows() const { return static_cast<int64_t>(row_token.size()); }
  RoutePlan Plan(Outputs& outputs) const {
    return {.num_tokens = num_tokens,
            .num_experts = num_experts,
            .num_routed = num_rows(),
            .max_active = num_experts,
            .expert_offsets = outputs.In(offsets),
            .row_token = outputs.In(row_token),
            .row_gate = outputs.In(row_gate),
            .token_rows = outputs.In(token_rows)};
  }
};

template <typename T>
void CheckExperts(int64_t num_tokens, int64_t num_experts, int64_t d,
                  int64_t f) {
  const Routed routed(num_tokens, num_experts);
  const int64_t rows = routed.num_rows();
  const auto hidden = RandomElements<T>(num_tokens * d, 1);
  const auto gate_up_weight = RandomElements<T>(num_experts * d * 2 * f, 2);
  const auto down_weight = RandomElements<T>(num_experts * f * d, 3);
  const auto d_out = RandomElements<T>(num_tokens * d, 4);
  const auto before = RandomElements<T>(num_tokens * d, 6);
  CheckSchedules("experts", [&](Outputs& outputs) {
    const auto queue = isa_shim::MakeQueue(outputs.stream(), kWorkspace);
    const RoutePlan plan = routed.Plan(outputs);
    const T* hidden_in = outputs.In(hidden);
    const T* gate_up_in = outputs.In(gate_up_weight);
    const T* down_in = outputs.In(down_weight);
    T* gate_up = outputs.Add<T>(rows * 2 * f);
    T* row_scratch = outputs.AddScratch<T>(rows * d);
    T* activation = outputs.AddScratch<T>(rows * f);
    isa_shim::ExpertForward({.plan = plan,
                             .d_model = d,
                             .d_ffn = f,
                             .hidden = hidden_in,
                             .gate_up_weight = gate_up_in,
                             .down_weight = down_in,
                             .gate_up = gate_up,
                             .row_output = row_scratch,
                             .out = outputs.AddCopy(before),
                             .activation = activation,
                             .host_offsets = routed.offsets.data()},
                            *queue);
    isa_shim::ExpertBackward(
        {.plan = plan,
         .d_model = d,
         .d_ffn = f,
         .hidden = hidden_in,
         .gate_up_weight = gate_up_in,
         .down_weight = down_in,
         .gate_up = gate_up,
         .d_out = outputs.In(d_out),
         .d_gate_up = outputs.AddScratch<T>(rows * 2 * f),
         .d_row_hidden = row_scratch,
         .activation = activation,
         .d_row_gate = outputs.Add<float>(rows),
         .d_hidden = outputs.Add<T>(num_tokens * d),
         .d_gate_up_weight = outputs.Add<float>(num_experts * d * 2 * f),
         .d_down_weight = outputs.Add<float>(num_experts * f * d),
         .host_offsets = routed.offsets.data()},
        *queue);
  });
}

template <typename T>
void CheckAttention(int64_t num_sequences, int64_t length, int64_t heads,
                    int64_t dim, int64_t query_block) {
  const int64_t tokens = num_sequences * length, width = heads * dim;
  const auto qkv = RandomElements<T>(tokens * 3 * width, 1, 2.0f);
  const auto d_out = RandomElements<T>(tokens * width, 2);
  const int64_t scratch_size =
      sizeof(T) == sizeof(float)
          ? AttentionScratch(num_sequences, length, query_block)
          : AttentionScratchForBf16(num_sequences, length, dim, query_block);
  CheckSchedules("attention", [&](Outputs& outputs) {
    const auto queue = isa_shim::MakeQueue(outputs.stream(), kWorkspace);
    const T* qkv_in = outputs.In(qkv);
    T* out = outputs.Add<T>(tokens * width);
    float* log_sum_exp = outputs.Add<float>(tokens * heads);
    float* scratch = outputs.AddScratch<float>(scratch_size);
    isa_shim::AttentionForward({num_sequences, length, heads, dim, qkv_in, out,
                                log_sum_exp, query_block, scratch},
                               *queue);
    isa_shim::AttentionBackward(
        {num_sequences, length, heads, dim, qkv_in, out, log_sum_exp,
         outputs.In(d_out), outputs.Add<T>(tokens * 3 * width), query_block,
         scratch},
        *queue);
  });
}

template <typename T>
void CheckHead(int64_t num_tokens, int64_t vocab_size, int64_t chunk,
               bool gradients) {
  constexpr int64_t kModel = 9;
  const auto hidden = RandomElements<T>(num_tokens * kModel, 1);
  const auto head_weight = RandomElements<T>(vocab_size * kModel, 2);
  std::vector<int32_t> targets;
  Draws draws(3);
  for (int64_t t = 0; t < num_tokens; ++t) {
    targets.push_back(static_cast<int32_t>(draws.Below(vocab_size)));
  }
  CheckSchedules("head", [&](Outputs& outputs) {
    const auto queue = isa_shim::MakeQueue(outputs.stream(), kWorkspace);
    isa_shim::HeadCrossEntropy(
        {.num_tokens = num_tokens,
         .d_model = kModel,
         .vocab_size = vocab_size,
         .hidden = outputs.In(hidden),
         .head_weight = outputs.In(head_weight),
         .targets = outputs.In(targets),
         .token_loss = outputs.Add<float>(num_tokens),
         .grad_scale = 0.25f,
         .d_hidden = gradients ? outputs.Add<T>(num_tokens * kModel) : nullptr,
         .d_head_weight =
             gradients ? outputs.Add<float>(vocab_size * kModel) : nullptr,
         .loss_sum = outputs.Add<double>(1),
         .chunk_tokens = chunk,
         .logits = outputs.AddScratch<float>(chunk * vocab_size),
         .d_logits = outputs.AddScratch<T>(chunk * vocab_size)},
        *queue);
  });
}

void CheckGemms() {
  const auto check = [](int64_t m, int64_t n, int64_t k, bool transpose_a,
                        bool transpose_b, bool accumulate) {
    CheckGemm<float, float>(m, n, k, transpose_a, transpose_b, accumulate);
    CheckGemm<Bf16, float>(m, n, k, transpose_a, transpose_b, accumulate);
    CheckGemm<Bf16, Bf16>(m, n, k, transpose_a, transpose_b, accumulate);
  };
  for (const bool accumulate : {false, true}) {
    check(7, 5, 9, false, false, accumulate);
    check(7, 5, 9, true, false, accumulate);
    check(16, 1, 33, false, true, accumulate);
    check(3, 4, 0, true, true, accumulate);
    check(0, 4, 3, false, false, accumulate);
  }
}

template <typename T>
void CheckOperations() {
  CheckExperts<T>(0, 2, 3, 4);
  CheckExperts<T>(1, 2, 3, 4);
  CheckExperts<T>(9, 6, 8, 5);
  CheckAttention<T>(0, 4, 1, 4, 4);
  CheckAttention<T>(2, 1, 1, 4, 8);
  CheckAttention<T>(3, 11, 2, 8, 4);
  CheckAttention<T>(1, 12, 1, 4, 12);
  for (const bool gradients : {false, true}) {
    CheckHead<T>(0, 17, 4, gradients);
    CheckHead<T>(4, 17, 4, gradients);
    CheckHead<T>(9, 40, 4, gradients);
  }
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckGemms();
  softmoe::kernels::CheckOperations<float>();
  softmoe::kernels::CheckOperations<softmoe::kernels::Bf16>();
  return softmoe::kernels::Summary();
}
