// SPDX-License-Identifier: Apache-2.0
//
// Embedding, permute, SwiGLU, unpermute and cross-entropy through the
// simulator: no row, one, rows that leave a block partly empty; columns below,
// at and above the size of a warp and of a block; tokens without an expert.
#include "kernels/cuda/layer_kernels.h"
#include "kernels/simt/device/shim_test_support.h"

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

  // The plan, with arrays on the device.
  RoutePlan On(Outputs& outputs) const {
    RoutePlan on_device = plan;
    on_device.row_token = outputs.In(row_token);
    on_device.row_gate = outputs.In(row_gate);
    on_device.token_rows = outputs.In(token_rows);
    return on_device;
  }
};

// What a run with activations of T stored, as T and as floats.
template <typename T>
struct Stored {
  std::vector<std::vector<T>> activations;
  std::vector<std::vector<float>> floats;
};

// Calls run(T()) for both types on the same numbers: bf16 must have floats'
// results, rounded once, and the same floats beside them.
template <typename Run>
void CheckBothTypes(const char* what, const Run& run) {
  const Stored<float> computed = run(float());
  const Stored<Bf16> stored = run(Bf16());
  for (size_t i = 0; i < computed.activations.size(); ++i) {
    RequireRounded(what, computed.activations[i], stored.activations.at(i));
  }
  for (size_t i = 0; i < computed.floats.size(); ++i) {
    RequireEqual(what, computed.floats[i], stored.floats.at(i));
  }
}

// The numbers of RandomBf16, as T.
template <typename T>
std::vector<T> Numbers(int64_t size, uint64_t seed, float scale = 1) {
  const std::vector<Bf16> numbers = RandomBf16(size, seed, scale);
  if constexpr (sizeof(T) == sizeof(Bf16)) {
    return numbers;
  } else {
    return ToFloats(numbers);
  }
}

template <typename T>
Stored<T> RunExpertRows(int64_t num_tokens, int64_t max_active, int64_t size) {
  const Plan p(num_tokens, max_active);
  const int64_t rows = p.plan.num_routed;
  const auto hidden = Numbers<T>(num_tokens * size, 1);
  const auto out = Numbers<T>(num_tokens * size, 2);
  const auto gate_up = Numbers<T>(rows * 2 * size, 3, 4.0f);
  const auto d_activation = Numbers<T>(rows * size, 4);
  Stored<T> results;
  CheckSchedules("expert rows", [&](Outputs& outputs) {
    const RoutePlan plan = p.On(outputs);
    T* permuted = outputs.Add<T>(rows * size);
    isa_shim::Permute({plan, size, outputs.In(hidden), permuted},
                      outputs.stream());
    T* added = outputs.AddCopy(out);
    isa_shim::Unpermute({plan, size, permuted, true, added}, outputs.stream());
    T* summed = outputs.Add<T>(num_tokens * size);
    isa_shim::Unpermute({plan, size, permuted, false, summed},
                        outputs.stream());
    T* forward = outputs.Add<T>(rows * size);
    isa_shim::SwigluForward({plan, size, outputs.In(gate_up), forward},
                            outputs.stream());
    T* d_gate_up = outputs.Add<T>(rows * 2 * size);
    T* again = outputs.Add<T>(rows * size);
    float* d_row_gate = outputs.Add<float>(rows);
    isa_shim::SwigluBackward(
        {plan, size, outputs.In(gate_up), outputs.In(d_activation), size,
         d_gate_up, again, d_row_gate},
        outputs.stream());
    results = {{outputs.Read(permuted, rows * size),
                outputs.Read(added, num_tokens * size),
                outputs.Read(summed, num_tokens * size),
                outputs.Read(forward, rows * size),
                outputs.Read(d_gate_up, rows * 2 * size),
                outputs.Read(again, rows * size)},
               {outputs.Read(d_row_gate, rows)}};
  });
  return results;
}

void CheckExpertRows(int64_t num_tokens, int64_t max_active, int64_t size) {
  CheckBothTypes("expert rows", [&](auto type) {
    return RunExpertRows<decltype(type)>(num_tokens, max_active, size);
  });
}

template <typename T>
Stored<T> RunEmbedding(int64_t num_tokens, int64_t d_model,
                       int64_t vocab_size) {
  Draws draws(6);
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < num_tokens; ++t) {
    ids.push_back(static_cast<int32_t>(draws.Below(vocab_size)));
  }
  const auto table = RandomFloats(vocab_size * d_model, 7);
  const auto d_out = Numbers<T>(num_tokens * d_model, 8);
  Stored<T> results;
  CheckSchedules("embedding", [&](Outputs& outputs) {
    const int32_t* tokens = outputs.In(ids);
    T* out = outputs.Add<T>(num_tokens * d_model);
    isa_shim::EmbeddingForward(
        {num_tokens, d_model, tokens, outputs.In(table), out},
        outputs.stream());
    float* d_table = outputs.Add<float>(vocab_size * d_model);
    isa_shim::EmbeddingBackward(
        {num_tokens, d_model, vocab_size, tokens, outputs.In(d_out), d_table,
         outputs.AddScratch<int32_t>(EmbeddingDeviceScratch(num_tokens))},
        outputs.stream());
    results = {{outputs.Read(out, num_tokens * d_model)},
               {outputs.Read(d_table, vocab_size * d_model)}};
  });
  return results;
}

void CheckEmbedding(int64_t num_tokens, int64_t d_model, int64_t vocab_size) {
  CheckBothTypes("embedding", [&](auto type) {
    return RunEmbedding<decltype(type)>(num_tokens, d_model, vocab_size);
  });
}

template <typename T>
Stored<T> RunRope(int64_t num_sequences, int64_t num_heads, int64_t head_dim) {
  constexpr int64_t kLength = 3;
  const int64_t size = num_sequences * kLength * 3 * num_heads * head_dim;
  const auto cosine = RandomFloats(kLength * head_dim / 2, 10);
  const auto sine = RandomFloats(kLength * head_dim / 2, 11);
  const auto qkv = Numbers<T>(size, 12);
  Stored<T> results;
  CheckSchedules("RoPE", [&](Outputs& outputs) {
    results = {};
    for (const bool inverse : {false, true}) {
      T* rotated = outputs.AddCopy(qkv);
      isa_shim::Rope({num_sequences, kLength, num_heads, head_dim,
                      outputs.In(cosine), outputs.In(sine), rotated, inverse},
                     outputs.stream());
      results.activations.push_back(outputs.Read(rotated, size));
    }
  });
  return results;
}

void CheckRope(int64_t num_sequences, int64_t num_heads, int64_t head_dim) {
  CheckBothTypes("RoPE", [&](auto type) {
    return RunRope<decltype(type)>(num_sequences, num_heads, head_dim);
  });
}

template <typename T>
Stored<T> RunCrossEntropy(int64_t num_tokens, int64_t vocab_size) {
  const auto logits = RandomFloats(num_tokens * vocab_size, 8, 10.0f);
  Draws draws(9);
  std::vector<int32_t> targets;
  for (int64_t t = 0; t < num_tokens; ++t) {
    targets.push_back(static_cast<int32_t>(draws.Below(vocab_size)));
  }
  Stored<T> results;
  CheckSchedules("cross-entropy", [&](Outputs& outputs) {
    const int32_t* ids = outputs.In(targets);
    T* d_logits = outputs.Add<T>(num_tokens * vocab_size);
    float* loss = outputs.Add<float>(num_tokens);
    isa_shim::TokenCrossEntropy({num_tokens, vocab_size, ids, 0.25f,
                                 outputs.AddCopy(logits), d_logits, loss},
                                outputs.stream());
    T* not_wanted = nullptr;
    float* loss_only = outputs.Add<float>(num_tokens);
    isa_shim::TokenCrossEntropy(
        {num_tokens, vocab_size, ids, 0.25f, outputs.AddCopy(logits),
         not_wanted, loss_only},
        outputs.stream());
    results = {
        {outputs.Read(d_logits, num_tokens * vocab_size)},
        {outputs.Read(loss, num_tokens), outputs.Read(loss_only, num_tokens)}};
    if constexpr (sizeof(T) == sizeof(float)) {  // in place
      float* both = outputs.AddCopy(logits);
      isa_shim::TokenCrossEntropy({num_tokens, vocab_size, ids, 0.25f, both,
                                   both, outputs.Add<float>(num_tokens)},
                                  outputs.stream());
      RequireEqual("cross-entropy in place", results.activations[0],
                   outputs.Read(both, num_tokens * vocab_size));
    }
  });
  return results;
}

void CheckCrossEntropy(int64_t num_tokens, int64_t vocab_size) {
  CheckBothTypes("cross-entropy", [&](auto type) {
    return RunCrossEntropy<decltype(type)>(num_tokens, vocab_size);
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
