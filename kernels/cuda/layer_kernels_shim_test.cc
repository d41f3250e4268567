// SPDX-License-Identifier: Apache-2.0
//
// Embedding, permute, SwiGLU, unpermute and cross-entropy through the
// simulator: no row, one, rows that leave a block partly empty; columns below,
// at and above the size of a warp and of a block; tokens without an expert.
#include "kernels/cuda/layer_kernels.h"
#include "kernels/simt/shim/shim_test_support.h"

namespace softmoe::kernels {
namespace {

// A plan of tokens with 0 to max_active experts. Rows are in order of token
// instead of expert, which no kernel here can see.
struct Plan {
  std::vector<int32_t> row_token, token_rows;
  std::vector<float> row_gate;
  RoutePlan plan = {};

  Plan(int64_t num_tokens, int64_t max_active) {
    Draws draws(5);
    for (int64_t t = 0; t < num_tokens; ++t) {
      const int64_t active = draws.Below(max_active + 1);
      for (int64_t i = 0; i < max_active; ++i) {
        token_rows.push_back(i < active ? static_cast<int32_t>(row_token.size())
                                        : -1);
        if (i >= active) continue;
        row_token.push_back(static_cast<int32_t>(t));
        row_gate.push_back(draws.Signed());
      }
    }
    plan.num_tokens = num_tokens;
    plan.num_routed = static_cast<int64_t>(row_token.size());
    plan.max_active = max_active;
  }

  // With arrays on the device.
  RoutePlan On(Outputs& outputs) const {
    RoutePlan on_device = plan;
    on_device.row_token = outputs.In(row_token);
    on_device.row_gate = outputs.In(row_gate);
    on_device.token_rows = outputs.In(token_rows);
    return on_device;
  }
};

void CheckExpertRows(int64_t num_tokens, int64_t max_active, int64_t size) {
  const Plan p(num_tokens, max_active);
  const int64_t rows = p.plan.num_routed;
  const auto hidden = RandomFloats(num_tokens * size, 1);
  const auto out = RandomFloats(num_tokens * size, 2);
  const auto gate_up = RandomFloats(rows * 2 * size, 3, 4.0f);
  const auto d_activation = RandomFloats(rows * size, 4);
  CheckSchedules("expert rows", [&](Outputs& outputs) {
    const RoutePlan plan = p.On(outputs);
    float* permuted = outputs.Add<float>(rows * size);
    isa_shim::Permute({plan, size, outputs.In(hidden), permuted},
                      outputs.stream());
    isa_shim::Unpermute({plan, size, permuted, true, outputs.AddCopy(out)},
                        outputs.stream());
    isa_shim::Unpermute(
        {plan, size, permuted, false, outputs.Add<float>(num_tokens * size)},
        outputs.stream());
    isa_shim::SwigluForward(
        {plan, size, outputs.In(gate_up), outputs.Add<float>(rows * size)},
        outputs.stream());
    isa_shim::SwigluBackward(
        {plan, size, outputs.In(gate_up), outputs.In(d_activation), size,
         outputs.Add<float>(rows * 2 * size), outputs.Add<float>(rows * size),
         outputs.Add<float>(rows)},
        outputs.stream());
  });
}

void CheckEmbedding(int64_t num_tokens, int64_t d_model, int64_t vocab_size) {
  Draws draws(6);
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < num_tokens; ++t) {
    ids.push_back(static_cast<int32_t>(draws.Below(vocab_size)));
  }
  const auto table = RandomFloats(vocab_size * d_model, 7);
  const auto d_out = RandomFloats(num_tokens * d_model, 8);
  CheckSchedules("embedding", [&](Outputs& outputs) {
    const int32_t* tokens = outputs.In(ids);
    isa_shim::EmbeddingForward({num_tokens, d_model, tokens, outputs.In(table),
                                outputs.Add<float>(num_tokens * d_model)},
                               outputs.stream());
    isa_shim::EmbeddingBackward(
        {num_tokens, d_model, vocab_size, tokens, outputs.In(d_out),
         outputs.Add<float>(vocab_size * d_model),
         outputs.AddScratch<int32_t>(EmbeddingDeviceScratch(num_tokens))},
        outputs.stream());
  });
}

void CheckRope(int64_t num_sequences, int64_t num_heads, int64_t head_dim) {
  constexpr int64_t kLength = 3;
  const auto cosine = RandomFloats(kLength * head_dim / 2, 10);
  const auto sine = RandomFloats(kLength * head_dim / 2, 11);
  const auto qkv =
      RandomFloats(num_sequences * kLength * 3 * num_heads * head_dim, 12);
  CheckSchedules("RoPE", [&](Outputs& outputs) {
    for (const bool inverse : {false, true}) {
      isa_shim::Rope(
          {num_sequences, kLength, num_heads, head_dim, outputs.In(cosine),
           outputs.In(sine), outputs.AddCopy(qkv), inverse},
          outputs.stream());
    }
  });
}

void CheckCrossEntropy(int64_t num_tokens, int64_t vocab_size) {
  const auto logits = RandomFloats(num_tokens * vocab_size, 8, 10.0f);
  Draws draws(9);
  std::vector<int32_t> targets;
  for (int64_t t = 0; t < num_tokens; ++t) {
    targets.push_back(static_cast<int32_t>(draws.Below(vocab_size)));
  }
  CheckSchedules("cross-entropy", [&](Outputs& outputs) {
    for (const bool want_gradient : {true, false}) {
      isa_shim::TokenCrossEntropy(
          {num_tokens, vocab_size, outputs.In(targets), 0.25f, want_gradient,
           outputs.AddCopy(logits), outputs.Add<float>(num_tokens)},
          outputs.stream());
    }
  });
}

void CheckAll() {
  for (const int64_t num_tokens : {0, 1, 9, 40}) {
    for (const int64_t size : {1, 32, 75}) {
      CheckExpertRows(num_tokens, 1, size);
      CheckExpertRows(num_tokens, 3, size);
      CheckEmbedding(num_tokens, size, 17);
    }
    for (const int64_t vocab_size : {1, 33, 256, 700}) {
      CheckCrossEntropy(num_tokens, vocab_size);
    }
  }
  // One, two and three passes of the sort; several blocks of tokens.
  for (const int64_t vocab_size : {1, 256, 257, 66000}) {
    CheckEmbedding(600, 1, vocab_size);
  }
  for (const int64_t num_heads : {1, 3}) {
    CheckRope(0, num_heads, 4);
    CheckRope(2, num_heads, 2);
    CheckRope(3, num_heads, 200);
  }
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
