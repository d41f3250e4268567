// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/peaks.h"

namespace softmoe::kernels {
namespace {

// The timed work is really done: every lane has the same numbers, so their sum
// is one of them times a power of two, and every rounding is known.
TEST(FmaPeak, RunsAllChainsForAllSteps) {
  for (const Isa isa : {Isa::kV3, Isa::kV4}) {
    if (!IsaAvailable(isa)) continue;
    SelectIsa(IsaName(isa));
    const float lanes = isa == Isa::kV4 ? 16 : 8;
    for (const int64_t steps : {0, 1, 7, 100}) {
      ThreadPool pool(3);
      std::vector<float> sink(3, -1.0f);
      FmaPeak({.steps = steps, .sink = sink.data()}, pool);
      for (int thread = 0; thread < 3; ++thread) {
        const float factor = 0.999f + 1e-9f * static_cast<float>(thread);
        const float term = 1e-3f + 1e-9f * static_cast<float>(steps);
        float total = 0;
        for (int c = 0; c < kFmaPeakChains; ++c) {
          float value = static_cast<float>(c);
          for (int64_t step = 0; step < steps; ++step) {
            value = std::fma(value, factor, term);
          }
          total += value;
        }
        EXPECT_EQ(sink[thread], lanes * total)
            << IsaName(isa) << ", " << steps << " steps, thread " << thread;
      }
      EXPECT_EQ(FmaPeakFlops(steps),
                2.0 * 12 * lanes * static_cast<double>(steps));
    }
  }
  SelectIsa("");
}

}  // namespace
}  // namespace softmoe::kernels
