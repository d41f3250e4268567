// SPDX-License-Identifier: Apache-2.0
//
// Runs the benchmarks of the libraries it is linked with; names the ISA level.
#include <benchmark/benchmark.h>

#include "kernels/isa.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext(
      "isa", softmoe::kernels::IsaName(softmoe::kernels::ActiveIsa()));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
