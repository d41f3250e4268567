// SPDX-License-Identifier: Apache-2.0
//
// peaks.h - measures the most that this machine can do, with which the rates of
// benchmarks and profiles are compared.
#ifndef SOFTMOE_KERNELS_PEAKS_H_
#define SOFTMOE_KERNELS_PEAKS_H_

#include "core/parallel_for.h"

namespace softmoe::kernels {

// GFLOP/s of fused multiply-adds on registers (fma_peak.h) with the pool's
// threads: the best of some short bursts, since neighbours on the machine can
// only take away. Measured at the first call for a number of threads.
double PeakGflops(ThreadPool& pool);

// GB/s, read and written, of copying more than the caches hold; as above.
// What stays in a cache may be faster.
double CopyGigabytes(ThreadPool& pool);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_PEAKS_H_
