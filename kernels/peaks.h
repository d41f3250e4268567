// SPDX-License-Identifier: Apache-2.0
//
// peaks.h - measures the most that this machine can do, with which the rates of
// benchmarks and profiles are compared.
#ifndef SOFTMOE_KERNELS_PEAKS_H_
#define SOFTMOE_KERNELS_PEAKS_H_

#include <cstdint>

#include "core/parallel_for.h"
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

// GFLOP/s of fused multiply-adds on registers (FmaPeak) with the pool's
// threads: the best of some short bursts, since neighbours on the machine can
// only take away. Measured at the first call for a number of threads.
double PeakGflops(ThreadPool& pool);

// GB/s, read and written, of copying more than the caches hold; as above.
// What stays in a cache may be faster.
double CopyGigabytes(ThreadPool& pool);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_PEAKS_H_
