// SPDX-License-Identifier: Apache-2.0
//
// Noise through the simulator: no token, one, a block that is partly empty;
// columns below, at and above a draw's four, and in whole pairs of draws;
// arrays that begin at a multiple of 16 bytes, and not. Its values are tested
// by verify, op=jitter and op=logit_noise.
#include "kernels/cuda/noise_kernels.h"
#include "kernels/simt/device/shim_test_support.h"

namespace softmoe::kernels {
namespace {

constexpr RandomKey kKey = {3, RandomStream::kRouterNoise, 1, 2};

template <typename X, typename Y>
void CheckJitter(int64_t num_tokens, int64_t width, bool accumulate) {
  CheckSchedulesAndShifted("jitter", true, [&](DeviceRun& run) {
    run.Call(isa_shim::InputJitter,
             InputJitterArgsOf<X, Y>{.num_tokens = num_tokens,
                                     .d_model = width,
                                     .first_token = 7,
                                     .key = kKey,
                                     .amplitude = 0.1,
                                     .accumulate = accumulate},
             {.added_to = {accumulate ? "y" : ""}});
  });
}

void CheckLogitNoise(int64_t num_tokens, int64_t num_experts) {
  CheckSchedules("logit noise", [&](DeviceRun& run) {
    run.Call(isa_shim::LogitNoise,
             LogitNoiseArgs{.num_tokens = num_tokens,
                            .num_experts = num_experts,
                            .first_token = 7,
                            .key = kKey,
                            .sigma = 0.5},
             {.added_to = {"scores"}});
  });
}

void CheckAll() {
  for (const int64_t num_tokens : {0, 1, 65}) {
    for (const int64_t width : {1, 4, 33, 40}) {
      CheckJitter<float, float>(num_tokens, width, false);
      CheckJitter<float, float>(num_tokens, width, true);
      CheckJitter<Bf16, float>(num_tokens, width, false);
      CheckJitter<float, Bf16>(num_tokens, width, true);
      CheckLogitNoise(num_tokens, width);
    }
  }
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
