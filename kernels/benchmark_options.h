// SPDX-License-Identifier: Apache-2.0
//
// benchmark_options.h - what a benchmark program and the libraries linked into
// it share.
#ifndef SOFTMOE_KERNELS_BENCHMARK_OPTIONS_H_
#define SOFTMOE_KERNELS_BENCHMARK_OPTIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace softmoe::kernels {

// --threads: at most four, and never more than cores, unless the user chose.
inline int benchmark_threads = 1;

// Kernels are timed with one thread, and with benchmark_threads.
inline std::vector<int64_t> BenchmarkThreadCounts() {
  return benchmark_threads == 1 ? std::vector<int64_t>{1}
                                : std::vector<int64_t>{1, benchmark_threads};
}

// Each registers the benchmarks of a library for a --device, "cpu" or "cuda";
// called when the options are known.
inline std::map<std::string, std::vector<void (*)()>> add_benchmarks;

// --profile=NAME: prints the table of one training step, if a library has it.
inline void (*print_profile)(const std::string& name) = nullptr;

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_BENCHMARK_OPTIONS_H_
