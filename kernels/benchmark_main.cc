// SPDX-License-Identifier: Apache-2.0
//
// Runs the benchmarks of the libraries it is linked with.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
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
  --device=cuda    what only a CUDA device shows, at the paper's shapes, instead
                   of what the CPU does
  --isa=v3|v4      instruction set [the best of this machine]
  --threads=N      beside one thread, and for training steps [one per core, at
                   most four]; never more than cores, which would time waiting
  --profile[=NAME] a table of one training step by operation instead, with N
                   threads and with one: smoke/sparse2, midi/soft_fixed2 [it],
                   ...

tokens/s: of the median training step; best_tokens/s: of the best one.
mini/ranks2: two ranks of one thread each (tokens/s), alternating with a process
of two threads (threads_tokens/s); ratio: the first over the second; sent_bytes:
by a rank in a step, beside what plans say (planned_bytes). Void, hence not
there, with fewer than two threads.
GFLOPS: of the products alone; percent_of_peak: of what the multipliers can do
at most (BM_FmaPeak). per_row: time of a whole call over the rows it routes.
--benchmark_list_tests=true lists what --benchmark_filter=REGEX can choose.
)";

// The processor's name in /proc/cpuinfo, or "unknown".
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

constexpr char kDevice[] = "--device=", kThreads[] = "--threads=",
               kProfile[] = "--profile=";

int ParseThreads(const std::string& option) {
  const std::string number = option.substr(sizeof(kThreads) - 1);
  const int cores = softmoe::AvailableCores();
  if (number.empty() || number.size() > 4 ||
      number.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(number) < 1) {
    throw softmoe::ConfigError(fmt::format(
        "{}: expected a number of threads, 1 to {}", option, cores));
  }
  const int threads = std::stoi(number);
  if (threads > cores) {
    throw softmoe::ConfigError(
        fmt::format("{}: this process has {} core{}; threads that share a core "
                    "wait for each other: use at most {}",
                    option, cores, cores == 1 ? "" : "s", cores));
  }
  return threads;
}

struct Options {
  std::string device = "cpu";
  std::optional<std::string> profile;
};

// Takes our options out of `arguments`.
Options TakeOptions(std::vector<char*>* arguments) {
  Options options;
  benchmark_threads = std::min(4, softmoe::AvailableCores());
  std::vector<char*> rest;
  for (char* argument : *arguments) {
    const std::string text = argument;
    if (text.starts_with("--isa=")) {
      softmoe::kernels::SelectIsa(text.substr(6));
    } else if (text.starts_with(kThreads)) {
      benchmark_threads = ParseThreads(text);
    } else if (text.starts_with(kDevice)) {
      options.device = text.substr(sizeof(kDevice) - 1);
    } else if (text == "--profile") {
      options.profile = "midi/soft_fixed2";
    } else if (text.starts_with(kProfile)) {
      options.profile = text.substr(sizeof(kProfile) - 1);
    } else {
      rest.push_back(argument);
    }
  }
  *arguments = rest;
  return options;
}

// Refuses what Google Benchmark refuses with an exit code of its own: 0 for an
// unknown format, 1 for a file that cannot be written.
void CheckOutput(const std::string& argument) {
  const size_t equals = std::min(argument.find('='), argument.size());
  const std::string option = argument.substr(0, equals);
  const std::string value =
      argument.substr(std::min(equals + 1, argument.size()));
  if ((option == "--benchmark_format" || option == "--benchmark_out_format") &&
      value != "console" && value != "json" && value != "csv") {
    throw softmoe::ConfigError(argument + ": known are console, json and csv");
  }
  if (option == "--benchmark_out" && !value.empty() &&
      !std::ofstream(value, std::ios::app).is_open()) {
    throw softmoe::EnvironmentError(
        fmt::format("{}: {}; name a file that can be written", argument,
                    std::strerror(errno)));
  }
}

// Registers the benchmarks of a device.
void AddBenchmarks(const std::string& device) {
  const auto& of_devices = softmoe::kernels::add_benchmarks;
  const auto found = of_devices.find(device);
  if (found == of_devices.end()) {
    throw softmoe::ConfigError("--device=" + device +
                               ": known are cpu and cuda");
  }
  for (const auto& add : found->second) add();
}

softmoe::ExitCode Run(std::vector<char*> arguments) {
  for (const char* argument : arguments) {
    if (std::string(argument) == "--help") fmt::print("{}\n", kOurOptions);
  }
  std::fflush(stdout);
  const Options options = TakeOptions(&arguments);
  if (options.profile && options.device != "cpu") {
    throw softmoe::ConfigError(
        "--profile: a profile is one of the CPU; leave out --device");
  }
  for (const char* argument : arguments) CheckOutput(argument);
  AddBenchmarks(options.device);
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) {
    return softmoe::ExitCode::kUsage;
  }
  if (options.profile) {
    if (softmoe::kernels::print_profile == nullptr) {
      throw softmoe::ConfigError("--profile: there is no training step here");
    }
    fmt::print("{}, {}\n", ProcessorName(),
               softmoe::kernels::IsaName(softmoe::kernels::ActiveIsa()));
    softmoe::kernels::print_profile(*options.profile);
    return softmoe::ExitCode::kDone;
  }
  using softmoe::kernels::ActiveIsa;
  using softmoe::kernels::IsaName;
  benchmark::AddCustomContext("processor", ProcessorName());
  benchmark::AddCustomContext("isa", IsaName(ActiveIsa()));
  benchmark::AddCustomContext("threads", std::to_string(benchmark_threads));
  benchmark::AddCustomContext("cores",
                              std::to_string(softmoe::AvailableCores()));
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
