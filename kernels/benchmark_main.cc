// SPDX-License-Identifier: Apache-2.0
//
// Runs the benchmarks of the libraries it is linked with, at the best ISA level
// of this machine or the one of a first argument --isa=v3 or --isa=v4.
#include <benchmark/benchmark.h>

#include <string>

#include "kernels/isa.h"

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.rfind("--isa=", 0) == 0) {
    softmoe::kernels::SelectIsa(first.substr(6));
    argv[1] = argv[0];
    ++argv;
    --argc;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext(
      "isa", softmoe::kernels::IsaName(softmoe::kernels::ActiveIsa()));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
