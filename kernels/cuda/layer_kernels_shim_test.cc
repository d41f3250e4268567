// SPDX-License-Identifier: Apache-2.0
//
// Embedding, RoPE, permute, SwiGLU, unpermute and cross-entropy through the
// simulator: no row, one, rows that leave a block partly empty; columns below,
// at and above the size of a warp and of a block, one and eight to a thread;
// arrays that begin at a multiple of 16 bytes, and not; tokens without an
// expert.
//
// verify tests embedding and RoPE by themselves, but the others only within
// op=experts and op=lm_head, whose products have another order for each type:
// that they round once is tested here.
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/simt/device/shim_test_support.h"
#include "kernels/testing/random_routing.h"

namespace softmoe::kernels {
namespace {

// The bytes of floats as those of bf16, by the kernel that op=cast tests.
std::vector<char> Rounded(const std::vector<char>& floats) {
  DeviceRun run(0);
  run.Call(isa_shim::CastToBf16,
           CastToBf16Args{
               .size = static_cast<int64_t>(floats.size() / sizeof(float)),
               .from = reinterpret_cast<const float*>(floats.data())});
  return run.Outputs()[0];
}

// Calls launch(run, T()) for activations of both types: each output in bf16
// must be that in float rounded once, and outputs beside them the same floats.
// (In float there may be more outputs.)
template <typename Launch>
void CheckBothTypes(const char* what, const Launch& launch) {
  for (const bool shifted : {false, true}) {
    const auto computed = CheckSchedules(
        what, [&](DeviceRun& run) { launch(run, float()); }, shifted);
    const auto stored = CheckSchedules(
        what, [&](DeviceRun& run) { launch(run, Bf16()); }, shifted);
    for (size_t i = 0; i < stored.size(); ++i) {
      if (stored[i] == computed.at(i)) continue;
      if (stored[i] == Rounded(computed[i])) continue;
      Fail("%s: output %zu in bf16 is not that in float, rounded", what, i);
    }
  }
}

template <typename T>
void LaunchExpertRows(DeviceRun& run, const RandomRouting& routing,
                      int64_t size) {
  const RoutePlan plan = run.Complete(routing.Plan());
  const int64_t tokens = plan.num_tokens, rows = plan.num_routed;
  const T* hidden = run.In(RandomNumbers<T>(tokens * size, 1));
  T* permuted = run.Out<T>(rows * size);
  isa_shim::Permute({plan, size, hidden, permuted}, run.stream());
  T* added = run.InOut(RandomNumbers<T>(tokens * size, 2));
  isa_shim::Unpermute({plan, size, permuted, true, added}, run.stream());
  T* summed = run.Out<T>(tokens * size);
  isa_shim::Unpermute({plan, size, permuted, false, summed}, run.stream());
  const T* gate_up = run.In(RandomNumbers<T>(rows * 2 * size, 3));
  isa_shim::SwigluForward({plan, size, gate_up, run.Out<T>(rows * size)},
                          run.stream());
  const T* d_activation = run.In(RandomNumbers<T>(rows * size, 4));
  isa_shim::SwigluBackward(
      {plan, size, gate_up, d_activation, size, run.Out<T>(rows * 2 * size),
       run.Out<T>(rows * size), run.Out<float>(rows)},
      run.stream());
}

void CheckExpertRows(int64_t num_tokens, int64_t max_active, int64_t size) {
  const RandomRouting routing(num_tokens, 4, max_active);
  CheckBothTypes("expert rows", [&](DeviceRun& run, auto type) {
    LaunchExpertRows<decltype(type)>(run, routing, size);
  });
}

template <typename T>
void LaunchCrossEntropy(DeviceRun& run, int64_t num_tokens,
                        int64_t vocab_size) {
  const int64_t size = num_tokens * vocab_size;
  const int32_t* targets = run.In(RandomIndices(num_tokens, vocab_size, 9));
  const auto drawn = RandomNumbers<float>(size, 8);
  const auto call = [&](float* logits, T* d_logits) {
    isa_shim::TokenCrossEntropy({num_tokens, vocab_size, targets, 0.25f, logits,
                                 d_logits, run.Out<float>(num_tokens)},
                                run.stream());
  };
  T* d_logits = run.Out<T>(size);
  call(run.InOut(drawn), d_logits);
  call(run.InOut(drawn), nullptr);
  if constexpr (std::is_same_v<T, float>) {
    float* both = run.InOut(drawn);
    call(both, both);
    const auto bits = [&](const float* x) {
      return run.Read(reinterpret_cast<const uint32_t*>(x), size);
    };
    if (bits(both) != bits(d_logits)) {
      Fail("cross-entropy in place has other gradients");
    }
  }
}

void CheckCrossEntropy(int64_t num_tokens, int64_t vocab_size) {
  CheckBothTypes("cross-entropy", [&](DeviceRun& run, auto type) {
    LaunchCrossEntropy<decltype(type)>(run, num_tokens, vocab_size);
  });
}

template <typename T>
void CheckEmbedding(int64_t num_tokens, int64_t d_model, int64_t vocab_size) {
  const auto ids = RandomIndices(num_tokens, vocab_size, 6);
  CheckSchedulesAndShifted("embedding", true, [&](DeviceRun& run) {
    run.Call(
        isa_shim::EmbeddingForward,
        EmbeddingForwardArgsOf<T>{
            .num_tokens = num_tokens, .d_model = d_model, .ids = ids.data()});
    run.Call(isa_shim::EmbeddingBackward,
             EmbeddingBackwardArgsOf<T>{.num_tokens = num_tokens,
                                        .d_model = d_model,
                                        .vocab_size = vocab_size,
                                        .ids = ids.data()});
  });
}

template <typename T>
void CheckRope(int64_t num_sequences, int64_t num_heads, int64_t head_dim) {
  CheckSchedulesAndShifted("RoPE", true, [&](DeviceRun& run) {
    for (const bool inverse : {false, true}) {
      run.Call(isa_shim::Rope,
               RopeArgsOf<T>{.num_sequences = num_sequences,
                             .sequence_length = 3,
                             .num_heads = num_heads,
                             .head_dim = head_dim,
                             .inverse = inverse},
               {.added_to = {"qkv"}});
    }
  });
}

template <typename T>
void CheckOperations() {
  for (const int64_t num_tokens : {0, 1, 9, 40}) {
    for (const int64_t size : {1, 32, 75, 264}) {
      CheckEmbedding<T>(num_tokens, size, 17);
    }
  }
  // One, two and three passes of the sort; several blocks of tokens.
  for (const int64_t vocab_size : {1, 256, 257, 66000}) {
    CheckEmbedding<T>(600, 1, vocab_size);
  }
  for (const int64_t num_heads : {1, 3}) {
    CheckRope<T>(0, num_heads, 4);
    CheckRope<T>(2, num_heads, 2);
    CheckRope<T>(2, num_heads, 96);
    CheckRope<T>(3, num_heads, 200);
  }
}

void CheckAll() {
  for (const int64_t num_tokens : {0, 1, 9, 40}) {
    for (const int64_t size : {1, 32, 75, 264}) {
      CheckExpertRows(num_tokens, 1, size);
      CheckExpertRows(num_tokens, 3, size);
    }
    for (const int64_t vocab_size : {1, 33, 256, 700, 2056}) {
      CheckCrossEntropy(num_tokens, vocab_size);
    }
  }
  CheckOperations<float>();
  CheckOperations<Bf16>();
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
