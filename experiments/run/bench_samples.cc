// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/bench_samples.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/config/benchmark_sizes.h"
#include "core/errors.h"
#include "core/text/ascii.h"

namespace softmoe::experiments {
namespace {

using Json = nlohmann::json;

// Allowed difference between the counted active experts and the number in the
// name: a soft router as drawn has a cutoff at which about that many are
// active.
constexpr double kActiveExpertsWithin = 0.02;

constexpr char kHowToMeasure[] =
    "measure on an idle machine with `./bazelw run //:bench -- "
    "--benchmark_filter='^mini/soft_ae' --benchmark_repetitions=5 "
    "--benchmark_format=json > bench.json`";

const BenchmarkSize& MiniSize() {
  for (const BenchmarkSize& size : kBenchmarkSizes) {
    if (std::string(size.name) == "mini") return size;
  }
  throw InternalError("no size of the mini grid in kBenchmarkSizes");
}

// Active experts and router.
using Setting = std::pair<double, std::string>;

// Parses "mini/soft_ae1.5/real_time" as {1.5, "soft"}. Returns nullopt for any
// other benchmark.
std::optional<Setting> SettingOf(const std::string& name) {
  // "random1.5": an older name of the soft router at 1.5.
  const std::pair<std::string, const char*> kPrefixes[] = {
      {"mini/sparse", "sparse"},
      {"mini/random", "soft"},
      {"mini/soft_ae", "soft"}};
  for (const auto& [prefix, router] : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    const std::string experts = name.substr(prefix.size());
    const auto number =
        ParseNumber<double>(experts.substr(0, experts.find('/')));
    if (number) return Setting{*number, router};
  }
  return std::nullopt;
}

void CheckSample(const Json& sample, double experts) {
  const std::string name = sample.at("name");
  const std::string label = sample.at("label");
  if (label != MiniSize().Label()) {
    throw DataError(fmt::format("{} has the sizes {}, but the mini grid has {}",
                                name, label, MiniSize().Label()));
  }
  const double counted = sample.at("active_experts");
  if (!(std::abs(counted - experts) <= kActiveExpertsWithin)) {
    throw DataError(fmt::format("{} has {:g} active experts", name, counted));
  }
  const double speed = sample.at("tokens/s");
  if (!(speed > 0)) {
    throw DataError(fmt::format("{} has {:g} tokens/s", name, speed));
  }
}

}  // namespace

std::vector<golden::ThroughputSamples> ParseBenchSamples(
    const std::string& text, const std::string& place) {
  std::map<Setting, std::vector<double>> samples;
  try {
    const Json json = Json::parse(text);
    for (const Json& each : json.at("benchmarks")) {
      const auto setting = SettingOf(each.at("name"));
      if (!setting || each.at("run_type") != "iteration") continue;
      CheckSample(each, setting->first);
      samples[*setting].push_back(each.at("tokens/s"));
    }
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: is not JSON from //:bench ({}); {}", place,
                                error.what(), kHowToMeasure));
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}: {}; {}", place, error.what(), kHowToMeasure));
  }
  if (samples.empty()) {
    throw DataError(fmt::format(
        "{}: has no benchmark mini/soft_ae1, mini/soft_ae1.5, ...; {}", place,
        kHowToMeasure));
  }
  std::vector<golden::ThroughputSamples> result;
  for (auto& [setting, speeds] : samples) {
    result.push_back({setting.first, std::move(speeds), setting.second});
  }
  return result;
}

}  // namespace softmoe::experiments
