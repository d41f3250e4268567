// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm, AdamW and the router through the simulator: one row, rows that leave
// a warp or block partly empty, several blocks; columns below, at and above the
// size of a warp.
#include "kernels/cuda/row_kernels.h"
#include "kernels/simt/device/shim_test_support.h"

namespace softmoe::kernels {
namespace {

template <typename T>
struct RmsNormResults {
  std::vector<T> y, d_x;
  std::vector<float> rstd, d_weight;
};

template <typename T>
RmsNormResults<T> RunRmsNorm(int64_t num_tokens, int64_t d_model,
                             const std::vector<T>& x, const std::vector<T>& d_y,
                             const std::vector<T>& d_x_before) {
  const auto weight = RandomFloats(d_model, 2);
  RmsNormResults<T> results;
  CheckSchedules("RMSNorm", [&](Outputs& outputs) {
    T* y = outputs.Add<T>(num_tokens * d_model);
    float* rstd = outputs.Add<float>(num_tokens);
    isa_shim::RmsNormForward({num_tokens, d_model, 1e-5f, outputs.In(x),
                              outputs.In(weight), y, rstd},
                             outputs.stream());
    T* d_x = outputs.AddCopy(d_x_before);
    float* d_weight = outputs.Add<float>(d_model);
    isa_shim::RmsNormBackward(
        {num_tokens, d_model, outputs.In(x), outputs.In(weight), rstd,
         outputs.In(d_y), d_x, d_weight,
         outputs.Add<float>(RmsNormScratch(num_tokens, d_model))},
        outputs.stream());
    results = {outputs.Read(y, num_tokens * d_model),
               outputs.Read(d_x, num_tokens * d_model),
               outputs.Read(rstd, num_tokens), outputs.Read(d_weight, d_model)};
  });
  return results;
}

void CheckRmsNorm(int64_t num_tokens, int64_t d_model) {
  const auto x = RandomBf16(num_tokens * d_model, 1);
  const auto d_y = RandomBf16(num_tokens * d_model, 3);
  const auto d_x = RandomBf16(num_tokens * d_model, 4);
  const auto computed = RunRmsNorm(num_tokens, d_model, ToFloats(x),
                                   ToFloats(d_y), ToFloats(d_x));
  const auto stored = RunRmsNorm(num_tokens, d_model, x, d_y, d_x);
  RequireRounded("RMSNorm y", computed.y, stored.y);
  RequireRounded("RMSNorm d_x", computed.d_x, stored.d_x);
  RequireEqual("RMSNorm rstd", computed.rstd, stored.rstd);
  RequireEqual("RMSNorm d_weight", computed.d_weight, stored.d_weight);
}

void CheckAdamW(int64_t size) {
  const auto gradient = RandomFloats(size, 1),
             parameter = RandomFloats(size, 2), first = RandomFloats(size, 3);
  auto second = RandomFloats(size, 4);
  for (float& v : second) v *= v;
  CheckSchedules("AdamW", [&](Outputs& outputs) {
    isa_shim::AdamW({size, 1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 10.0f, 20.0f, 0.5f,
                     outputs.In(gradient), outputs.AddCopy(parameter),
                     outputs.AddCopy(first), outputs.AddCopy(second)},
                    outputs.stream());
  });
}

void CheckRouter(const RouterShape& shape) {
  const int64_t n = shape.num_tokens, e = shape.num_experts;
  const int64_t a = shape.max_active;
  const auto scores = RandomFloats(n * e, 1, 3.0f);
  const auto d_gates = RandomFloats(n * a, 2);
  const auto d_probability = RandomFloats(e, 3);
  CheckSchedules("router", [&](Outputs& outputs) {
    const bool soft = shape.mode == RouterMode::kSoft;
    float* soft_weights = outputs.Add<float>(n * e);
    float* root = soft ? outputs.Add<float>(2 * n) : nullptr;
    int32_t* selected = outputs.Add<int32_t>(n * a);
    int64_t* bad_score = outputs.Add<int64_t>(1);
    const int64_t scratch_size = RouterScratch(n, e);
    isa_shim::RouterForward(
        {.shape = shape,
         .scores = outputs.In(scores),
         .soft_weights = soft_weights,
         .root = root,
         .num_active = outputs.Add<int32_t>(n),
         .selected = selected,
         .gates = outputs.Add<float>(n * a),
         .probability_sums = outputs.Add<double>(e),
         .balance_counts = outputs.Add<int64_t>(e),
         .active_counts = outputs.Add<int64_t>(e),
         .z_sum = n % 2 == 0 ? nullptr : outputs.Add<double>(1),
         .bad_score = bad_score,
         .scratch = outputs.AddScratch<double>(scratch_size)},
        outputs.stream());
    if (outputs.Read(bad_score, 1)[0] != -1) {
      fprintf(stderr, "a good score is called bad\n");
      ++Failures();
    }
    // Nothing past a token's last expert is read, so memory may end there.
    const auto experts = outputs.Read(selected, n * a);
    auto gradients = d_gates;
    while (gradients.size() > 1 && experts[gradients.size() - 1] < 0) {
      gradients.pop_back();
    }
    isa_shim::RouterBackward(
        {.shape = shape,
         .scores = outputs.In(scores),
         .soft_weights = soft_weights,
         .root = root,
         .selected = selected,
         .d_gates = outputs.In(gradients),
         .d_probability = n % 3 == 0 ? nullptr : outputs.In(d_probability),
         .z_scale = n % 2 == 0 ? 0.0f : 0.25f,
         .d_scores = outputs.Add<float>(n * e),
         .d_mean_active = outputs.Add<double>(1),
         .scratch = outputs.AddScratch<double>(scratch_size)},
        outputs.stream());
  });
}

// The first score that is not finite is named, whichever block has it.
void CheckBadScores() {
  RouterShape shape = {};
  shape.num_tokens = 150;
  shape.num_experts = 5;
  shape.mode = RouterMode::kSparse;
  shape.max_active = 2;
  const int64_t size = shape.num_tokens * shape.num_experts;
  for (const int64_t first :
       {int64_t{0}, int64_t{163}, int64_t{321}, size - 1}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      auto scores = RandomFloats(size, 1);
      scores[first] = bad;
      scores[size - 1] = NAN;
      CheckSchedules("bad score", [&](Outputs& outputs) {
        int64_t* bad_score = outputs.Add<int64_t>(1);
        // The other outputs mean nothing.
        isa_shim::RouterForward(
            {.shape = shape,
             .scores = outputs.In(scores),
             .soft_weights = outputs.AddScratch<float>(size),
             .root = nullptr,
             .num_active = outputs.AddScratch<int32_t>(shape.num_tokens),
             .selected = outputs.AddScratch<int32_t>(2 * shape.num_tokens),
             .gates = outputs.AddScratch<float>(2 * shape.num_tokens),
             .probability_sums = outputs.AddScratch<double>(shape.num_experts),
             .balance_counts = outputs.AddScratch<int64_t>(shape.num_experts),
             .active_counts = outputs.AddScratch<int64_t>(shape.num_experts),
             .z_sum = nullptr,
             .bad_score = bad_score,
             .scratch = outputs.AddScratch<double>(
                 RouterScratch(shape.num_tokens, shape.num_experts))},
            outputs.stream());
        const int64_t reported = outputs.Read(bad_score, 1)[0];
        if (reported == first) return;
        fprintf(stderr, "bad score %ld is reported as %ld\n",
                static_cast<long>(first), static_cast<long>(reported));
        ++Failures();
      });
    }
  }
}

// Every mode and basis; `top` from 1 to 4, in registers, and beyond.
void CheckRouters() {
  for (const int64_t num_tokens : {1, 33, 64, 150}) {
    for (const int64_t num_experts : {1, 5, 32, 33, 100}) {
      for (const float mean_active : {0.5f, 1.0f, 2.0f, 7.5f}) {
        if (mean_active > static_cast<float>(num_experts)) continue;
        RouterShape shape = {};
        shape.num_tokens = num_tokens;
        shape.num_experts = num_experts;
        shape.mode = RouterMode::kSoft;
        shape.mean_active = mean_active;
        shape.temperature = 0.7f;
        shape.cutoff = 1.1f * mean_active / static_cast<float>(num_experts);
        shape.balance_top = static_cast<int64_t>(std::ceil(mean_active));
        shape.max_active = shape.balance_top;
        shape.fallback_top1 = num_tokens % 2 == 1;
        for (const BalanceBasis basis :
             {BalanceBasis::kSoftWeights, BalanceBasis::kScoresSoftmax}) {
          shape.balance = basis;
          CheckRouter(shape);
        }
        shape.mode = RouterMode::kSparse;
        CheckRouter(shape);
      }
    }
  }
  RouterShape longest = {};  // more blocks than strips of the last sums
  longest.num_tokens = kRouterTokenBlock * 17 + 1;
  longest.num_experts = 11;  // the last sums take two blocks
  longest.mode = RouterMode::kSparse;
  longest.max_active = 1;
  CheckRouter(longest);
  RouterShape largest = {};
  largest.num_tokens = 70;
  largest.num_experts = 256;  // more shared memory than comes without asking
  largest.mode = RouterMode::kSoft;
  largest.balance = BalanceBasis::kScoresSoftmax;
  largest.mean_active = 2.0f;
  largest.temperature = 1.0f;
  largest.max_active = 4;
  largest.balance_top = 2;
  // sm_86 and sm_89 run code of sm_80 as well, but have 99 KiB.
  simt::SetDeviceLimits({.shared_memory_per_block = size_t{99} * 1024});
  CheckRouter(largest);
  simt::SetDeviceLimits({});
  largest.mean_active = 200.0f;  // and uses all of it
  CheckRouter(largest);

  RouterShape sparsest = {};  // far fewer experts than there is room for
  sparsest.num_tokens = 65;
  sparsest.num_experts = 100;
  sparsest.mode = RouterMode::kSoft;
  sparsest.mean_active = 1.0f;
  sparsest.temperature = 0.1f;
  sparsest.cutoff = 0.1f;
  sparsest.max_active = 100;
  sparsest.balance_top = 1;
  CheckRouter(sparsest);
}

void CheckAll() {
  for (const int64_t num_tokens : {1, 9, 131}) {
    for (const int64_t d_model : {1, 32, 129})
      CheckRmsNorm(num_tokens, d_model);
  }
  CheckRmsNorm(64 * 8 + 1, 7);   // a second block of the backward pass
  CheckRmsNorm(64 * 17 + 1, 2);  // more blocks than strips of the last sum
  for (const int64_t size : {1, 256, 1000}) CheckAdamW(size);
  CheckRouters();
  CheckBadScores();
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
