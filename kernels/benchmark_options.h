// SPDX-License-Identifier: Apache-2.0
//
// benchmark_options.h - what the command line of a benchmark program said.
#ifndef SOFTMOE_KERNELS_BENCHMARK_OPTIONS_H_
#define SOFTMOE_KERNELS_BENCHMARK_OPTIONS_H_

namespace softmoe::kernels {

// --threads: for benchmarks that do not name their threads; 0: one per core.
inline int benchmark_threads = 0;

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_BENCHMARK_OPTIONS_H_
