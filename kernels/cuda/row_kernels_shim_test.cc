// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm, AdamW and the router through the simulator: one row, rows that leave
// a warp or block partly empty, several blocks; columns below, at and above the
// size of a warp, one and eight to a thread; arrays that begin at a multiple of
// 16 bytes, and not. Their results are tested by verify, op=rmsnorm, op=adamw,
// op=router and op=balance_sums.
#include <cmath>
#include <string_view>

#include "kernels/cuda/row_kernels.h"
#include "kernels/simt/device/shim_test_support.h"
#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

template <typename T>
void CheckRmsNorm(int64_t num_tokens, int64_t d_model) {
  const auto launch = [&](DeviceRun& run) {
    const auto forward = run.Call(
        isa_shim::RmsNormForward,
        RmsNormForwardArgsOf<T>{
            .num_tokens = num_tokens, .d_model = d_model, .epsilon = 1e-5f});
    run.Call(isa_shim::RmsNormBackward,
             RmsNormBackwardArgsOf<T>{.num_tokens = num_tokens,
                                      .d_model = d_model,
                                      .x = forward.x,
                                      .weight = forward.weight,
                                      .rstd = forward.rstd},
             {.added_to = {"d_x"}});
  };
  CheckSchedulesAndShifted("RMSNorm", d_model % 8 != 0, launch);
}

void CheckAdamW(int64_t size) {
  auto second_moment = RandomNumbers<float>(size, 4);
  for (float& v : second_moment) v *= v;
  CheckSchedulesAndShifted("AdamW", true, [&](DeviceRun& run) {
    run.Call(isa_shim::AdamW,
             AdamWArgs{.size = size,
                       .learning_rate = 1e-3f,
                       .beta1 = 0.9f,
                       .beta2 = 0.95f,
                       .epsilon = 1e-8f,
                       .weight_decay = 0.1f,
                       .bias1 = 10.0f,
                       .bias2 = 20.0f,
                       .gradient_scale = 0.5f,
                       .second_moment = second_moment.data()},
             {.added_to = {"parameter", "first_moment"}});
  });
}

void CheckRouter(const RouterShape& shape) {
  const int64_t n = shape.num_tokens, slots = n * shape.max_active;
  auto scores = RandomFloats(n * shape.num_experts, 1);
  for (float& score : scores) score *= 3;
  const std::string_view root = shape.mode == RouterMode::kSoft ? "" : "root";
  CheckSchedules("router", [&](DeviceRun& run) {
    const auto forward =
        run.Call(isa_shim::RouterForward,
                 RouterForwardArgs{.shape = shape, .scores = run.In(scores)},
                 {.absent = {root, n % 2 == 0 ? "z_sum" : ""}});
    // Nothing past a token's last expert is read, so memory may end there.
    const auto experts = run.Read(forward.selected, slots);
    auto d_gates = RandomNumbers<float>(slots, 2);
    while (d_gates.size() > 1 && experts[d_gates.size() - 1] < 0) {
      d_gates.pop_back();
    }
    run.Call(isa_shim::RouterBackward,
             RouterBackwardArgs{.shape = shape,
                                .scores = forward.scores,
                                .soft_weights = forward.soft_weights,
                                .root = forward.root,
                                .selected = forward.selected,
                                .d_gates = run.In(d_gates),
                                .z_scale = n % 2 == 0 ? 0.0f : 0.25f},
             {.absent = {root, n % 3 == 0 ? "d_probability" : ""}});
  });
}

// The first score that is not finite is named, whichever block has it.
void CheckBadScores(int64_t num_tokens) {
  const RouterShape shape = {.num_tokens = num_tokens,
                             .num_experts = 5,
                             .mode = RouterMode::kSparse,
                             .max_active = 2};
  const int64_t size = shape.num_tokens * shape.num_experts;
  for (const int64_t first :
       {int64_t{0}, int64_t{163}, int64_t{321}, size - 1}) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      auto scores = RandomFloats(size, 1);
      scores[first] = bad;
      if (first < size - 1) scores[size - 1] = NAN;
      CheckSchedules("bad score", [&](DeviceRun& run) {
        // The other outputs mean nothing.
        const auto forward = run.Call(
            isa_shim::RouterForward,
            RouterForwardArgs{.shape = shape, .scores = run.In(scores)},
            {.scratch = {"soft_weights", "num_active", "selected", "gates",
                         "probability_sums", "balance_counts", "active_counts"},
             .absent = {"root", "z_sum"}});
        const int64_t reported = run.Read(forward.bad_score, 1)[0];
        if (reported == first) return;
        Fail("bad score %ld is reported as %ld", static_cast<long>(first),
             static_cast<long>(reported));
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

template <typename T>
void CheckRmsNorms() {
  for (const int64_t num_tokens : {1, 9, 131}) {
    for (const int64_t d_model : {1, 32, 129, 264}) {
      CheckRmsNorm<T>(num_tokens, d_model);
    }
  }
  CheckRmsNorm<T>(64 * 33 + 1, 2);  // more blocks than strips of the last sum
  CheckRmsNorm<T>(67, 2056);        // shares of fewer warps have room
}

void CheckAll() {
  CheckRmsNorms<float>();
  CheckRmsNorms<Bf16>();
  for (const int64_t size : {1, 256, 1000}) CheckAdamW(size);
  CheckRouters();
  CheckBadScores(150);
  CheckBadScores(kRouterTokenBlock * 17 + 1);  // strips of several blocks
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
