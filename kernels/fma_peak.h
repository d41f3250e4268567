// SPDX-License-Identifier: Apache-2.0
//
// fma_peak.h - the most that the multipliers of this machine can do: the
// yardstick of the benchmarks.
#ifndef SOFTMOE_KERNELS_FMA_PEAK_H_
#define SOFTMOE_KERNELS_FMA_PEAK_H_

#include <cstdint>

#include "kernels/isa.h"

namespace softmoe::kernels {

// Chains in flight: latency (4 cycles) times multipliers (2), and some more.
inline constexpr int kFmaPeakChains = 12;

// Every thread runs `steps` rounds of independent fused multiply-adds that stay
// in registers.
struct FmaPeakArgs {
  int64_t steps;
  float* sink;  // [threads], so that nothing is optimised away
};
SOFTMOE_DECLARE_KERNEL(FmaPeak);

// Floating-point operations of one thread in `steps` rounds.
inline double FmaPeakFlops(int64_t steps) {
  const double lanes = ActiveIsa() == Isa::kV4 ? 16 : 8;
  return 2.0 * kFmaPeakChains * lanes * static_cast<double>(steps);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_FMA_PEAK_H_
