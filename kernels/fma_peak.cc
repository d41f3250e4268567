// SPDX-License-Identifier: Apache-2.0
#include "kernels/peaks.h"
#include "kernels/simd/simd.h"

namespace softmoe::kernels::SOFTMOE_ISA {

void FmaPeak(const FmaPeakArgs& args, ThreadPool& pool) {
  pool.ParallelFor(pool.threads(), [&](int64_t thread) {
    Floats chain[kFmaPeakChains];
    // Factors that the compiler does not know.
    const Floats factor(0.999f + 1e-9f * static_cast<float>(thread));
    const Floats term(1e-3f + 1e-9f * static_cast<float>(args.steps));
#pragma GCC unroll 12
    for (int c = 0; c < kFmaPeakChains; ++c) {
      chain[c] = Floats(static_cast<float>(c));
    }
    for (int64_t step = 0; step < args.steps; ++step) {
#pragma GCC unroll 12
      for (int c = 0; c < kFmaPeakChains; ++c) {
        chain[c] = Fma(chain[c], factor, term);
      }
    }
    Floats total(0.0f);
#pragma GCC unroll 12
    for (int c = 0; c < kFmaPeakChains; ++c) total += chain[c];
    args.sink[thread] = ReduceSum(total);
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
