// SPDX-License-Identifier: Apache-2.0
//
// Noise through the simulator: no token, one, a block that is partly empty;
// columns below, at and above a draw's four. Its values are tested by verify,
// op=jitter and op=logit_noise.
#include "kernels/cuda/noise_kernels.h"
#include "kernels/simt/device/shim_test_support.h"

namespace softmoe::kernels {
namespace {

void CheckNoise(int64_t num_tokens, int64_t width) {
  const RandomKey key = {3, RandomStream::kRouterNoise, 1, 2};
  const auto x = RandomFloats(num_tokens * width, 1);
  CheckSchedules("noise", [&](Outputs& outputs) {
    for (const bool accumulate : {false, true}) {
      isa_shim::InputJitter(
          {num_tokens, width, 7, key, 0.1, outputs.In(x),
           accumulate ? outputs.AddCopy(x) : outputs.Add<float>(x.size()),
           accumulate},
          outputs.stream());
    }
    isa_shim::LogitNoise({num_tokens, width, 7, key, 0.5, outputs.AddCopy(x)},
                         outputs.stream());
  });
}

// To and from the router's input, which is fp32.
void CheckJitterOfBf16(int64_t num_tokens, int64_t width) {
  const RandomKey key = {3, RandomStream::kRouterNoise, 1, 2};
  const int64_t size = num_tokens * width;
  const auto activations = RandomBf16(size, 1), before = RandomBf16(size, 2);
  const auto gradient = RandomFloats(size, 3);
  CheckSchedules("jitter of bf16", [&](Outputs& outputs) {
    const auto jitter = [&](const auto* x, auto* y, bool accumulate) {
      isa_shim::InputJitter({num_tokens, width, 7, key, 0.1, x, y, accumulate},
                            outputs.stream());
      return outputs.Read(y, size);
    };
    RequireEqual(
        "router's input",
        jitter(outputs.In(ToFloats(activations)), outputs.Add<float>(size),
               false),
        jitter(outputs.In(activations), outputs.Add<float>(size), false));
    const float* d_y = outputs.In(gradient);
    RequireRounded("gradient of activations",
                   jitter(d_y, outputs.AddCopy(ToFloats(before)), true),
                   jitter(d_y, outputs.AddCopy(before), true));
  });
}

void CheckAll() {
  for (const int64_t num_tokens : {0, 1, 65}) {
    for (const int64_t width : {1, 4, 33}) {
      CheckNoise(num_tokens, width);
      CheckJitterOfBf16(num_tokens, width);
    }
  }
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckAll();
  return softmoe::kernels::Summary();
}
