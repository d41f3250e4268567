// SPDX-License-Identifier: Apache-2.0
//
// Runs the benchmarks of the libraries it is linked with.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "kernels/benchmark_options.h"
#include "kernels/isa.h"

namespace {

using softmoe::kernels::benchmark_threads;

constexpr char kOurOptions[] = R"(
Of this program:
  --isa=v3|v4      instruction set [the best of this machine]
  --threads=N      for benchmarks that do not name their threads [one per core]

tokens/s: of the median training step; best_tokens/s: of the best one.
GFLOPS: of the products alone; percent_of_peak: of what the multipliers can do
at most (BM_FmaPeak). per_row: time of a whole call over the rows it routes.
--benchmark_list_tests=true lists what --benchmark_filter=REGEX can choose.
)";

// As /proc/cpuinfo calls it, or "unknown".
std::string ProcessorName() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

// Takes our options out of `arguments`.
void TakeOptions(std::vector<char*>* arguments) {
  std::vector<char*> rest;
  for (char* argument : *arguments) {
    const std::string text = argument;
    if (text.starts_with("--isa=")) {
      softmoe::kernels::SelectIsa(text.substr(6));
    } else if (text.starts_with("--threads=")) {
      const std::string number = text.substr(10);
      if (number.empty() || number.size() > 4 ||
          number.find_first_not_of("0123456789") != std::string::npos) {
        throw softmoe::ConfigError(
            fmt::format("{}: expected a number of threads", text));
      }
      benchmark_threads = std::stoi(number);
    } else {
      rest.push_back(argument);
    }
  }
  *arguments = rest;
}

softmoe::ExitCode Run(std::vector<char*> arguments) {
  for (const char* argument : arguments) {
    if (std::string(argument) == "--help") fmt::print("{}\n", kOurOptions);
  }
  std::fflush(stdout);
  TakeOptions(&arguments);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) {
    return softmoe::ExitCode::kUsage;
  }
  using softmoe::kernels::ActiveIsa;
  using softmoe::kernels::IsaName;
  benchmark::AddCustomContext("processor", ProcessorName());
  benchmark::AddCustomContext("isa", IsaName(ActiveIsa()));
  benchmark::AddCustomContext(
      "threads",
      std::to_string(softmoe::ThreadPool(benchmark_threads).threads()));
  benchmark::AddCustomContext("compiler", "g++ " __VERSION__);
  benchmark::AddCustomContext(
      "note",
      "a warning about a DEBUG library is about Debian's libbenchmark, not "
      "about what is timed");
  if (benchmark::RunSpecifiedBenchmarks() == 0) {
    throw softmoe::ConfigError(
        "--benchmark_filter matches nothing; --benchmark_list_tests=true lists "
        "the benchmarks");
  }
  return softmoe::ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  return softmoe::RunMain(
      "bench", [&] { return Run(std::vector<char*>(argv, argv + argc)); });
}
