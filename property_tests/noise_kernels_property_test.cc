// SPDX-License-Identifier: Apache-2.0
//
// Noise by the CUDA kernels, on a simulated device, whose logarithm, sine and
// cosine are the CPU's: the CPU's bits.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cuda/noise_kernels.h"
#include "kernels/noise.h"
#include "property_tests/testing/simulated_case.h"

namespace softmoe::property_tests {
namespace {

struct NoiseCase {
  int64_t num_tokens = *rc::gen::inRange<int64_t>(0, 40);
  int64_t width = *rc::gen::element<int64_t>(1, 2, 3, 4, 5, 31, 32, 70);
  // Whose index takes more than 32 bits, too.
  int64_t first_token = *rc::gen::element<int64_t>(0, 1000, int64_t{1} << 40);
  RandomKey key = {*rc::gen::arbitrary<uint64_t>(), RandomStream::kRouterNoise,
                   *rc::gen::arbitrary<uint32_t>(),
                   *rc::gen::inRange<uint32_t>(0, 1 << 24)};
  Floats x = NormalFloats(num_tokens * width, 1, 1);
  Floats before = NormalFloats(num_tokens * width, 1, 2);
};

RC_GTEST_PROP(NoiseKernels, JitterHasTheBitsOfTheCpu, ()) {
  const NoiseCase c;
  const bool accumulate = *rc::gen::arbitrary<bool>();
  const double amplitude = *rc::gen::element(0.0, 0.01, 0.9);
  ExpectTheBitsOfTheCpu(
      kernels::InputJitter, kernels::isa_shim::InputJitter,
      [&](auto& arrays, const auto& jitter) {
        Floats y = accumulate ? c.before : Floats(c.x.size(), NAN);
        jitter({c.num_tokens, c.width, c.first_token, c.key, amplitude,
                arrays.In(c.x), arrays.InOut(y), accumulate});
        return std::vector<Floats>{y};
      });
}

RC_GTEST_PROP(NoiseKernels, LogitNoiseHasTheBitsOfTheCpu, ()) {
  const NoiseCase c;
  const double sigma = *rc::gen::element(0.0, 0.1, 3.0);
  ExpectTheBitsOfTheCpu(kernels::LogitNoise, kernels::isa_shim::LogitNoise,
                        [&](auto& arrays, const auto& add) {
                          Floats scores = c.before;
                          add({c.num_tokens, c.width, c.first_token, c.key,
                               sigma, arrays.InOut(scores)});
                          return std::vector<Floats>{scores};
                        });
}

}  // namespace
}  // namespace softmoe::property_tests
