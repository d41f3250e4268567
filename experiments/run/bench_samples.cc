// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/bench_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/errors.h"
#include "kernels/benchmark_sizes.h"

namespace softmoe::experiments {
namespace {

using Json = nlohmann::json;

// What counted routing may differ by from the number in the name: fixed random
// routing draws two experts for half of the tokens, and one for the others.
constexpr double kActiveExpertsWithin = 0.02;

constexpr char kHowToMeasure[] =
    "measure on an idle machine with `./bazelw run //:bench -- "
    "--benchmark_filter='^mini/(sparse|random)' --benchmark_repetitions=5 "
    "--benchmark_format=json > bench.json`";

const kernels::BenchmarkSize& MiniSize() {
  for (const kernels::BenchmarkSize& size : kernels::kBenchmarkSizes) {
    if (std::string(size.name) == "mini") return size;
  }
  throw InternalError("no size of the mini grid in kBenchmarkSizes");
}

// 1.5 of "mini/random1.5/real_time"; nothing for another benchmark.
std::optional<double> ActiveExpertsOf(const std::string& name) {
  for (const std::string prefix : {"mini/sparse", "mini/random"}) {
    if (!name.starts_with(prefix)) continue;
    double experts = 0;
    const char* end = name.data() + name.size();
    const auto [rest, error] =
        std::from_chars(name.data() + prefix.size(), end, experts);
    if (error == std::errc() && (rest == end || *rest == '/')) return experts;
  }
  return std::nullopt;
}

void CheckSample(const Json& sample, double experts) {
  const std::string name = sample.at("name");
  const std::string label = sample.at("label");
  if (label != MiniSize().Label()) {
    throw DataError(
        fmt::format("{} is of the sizes {}, and the mini grid has "
                    "{}",
                    name, label, MiniSize().Label()));
  }
  const double counted = sample.at("active_experts");
  if (!(std::abs(counted - experts) <= kActiveExpertsWithin)) {
    throw DataError(fmt::format("{} has {:g} active experts", name, counted));
  }
}

}  // namespace

std::vector<golden::ThroughputSamples> ParseBenchSamples(
    const std::string& text, const std::string& place) {
  std::map<double, std::vector<double>> samples;
  try {
    const Json json = Json::parse(text);
    for (const Json& each : json.at("benchmarks")) {
      const auto experts = ActiveExpertsOf(each.at("name"));
      if (!experts || each.at("run_type") != "iteration") continue;
      CheckSample(each, *experts);
      samples[*experts].push_back(each.at("tokens/s"));
    }
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: is no JSON of //:bench ({}); {}", place,
                                error.what(), kHowToMeasure));
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}: {}; {}", place, error.what(), kHowToMeasure));
  }
  if (samples.empty()) {
    throw DataError(fmt::format(
        "{}: has no benchmark mini/sparse1, mini/random1.5, ...; {}", place,
        kHowToMeasure));
  }
  std::vector<golden::ThroughputSamples> result;
  for (auto& [experts, speeds] : samples) {
    result.push_back({experts, std::move(speeds)});
  }
  return result;
}

}  // namespace softmoe::experiments
