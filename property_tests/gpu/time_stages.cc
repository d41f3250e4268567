// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/time_stages.h"

#include <fmt/core.h>

#include <cstdint>
#include <sstream>
#include <utility>

#include "core/parallel_for.h"
#include "property_tests/gpu/stage_programs.h"

namespace softmoe::gpu {
namespace {

// The line for one benchmark; null if cuBLASLt has fewer algorithms.
Line TimeLine(const Line& entry, bool simulated) {
  std::vector<std::string> words;  // of KIND/OPERATION/PRECISION/NAME/SHAPE
  std::istringstream name(entry.at("run_name").get<std::string>());
  for (std::string word; std::getline(name, word, '/');) words.push_back(word);
  const std::string& kind = words.at(0);
  if (entry.contains("error_message")) {
    if (kind == "algorithm" && words.at(5) != "0") return nullptr;
    return {{"kind", "check"},
            {"name", name.str()},
            {"passed", false},
            {"utilisation", 0},
            {"text", entry.at("error_message")}};
  }
  const double unit = entry.at("time_unit") == "ms" ? 1e-3 : 1e-9;
  const double seconds = unit * entry.at("real_time").get<double>();
  const auto whole = [&](const char* counter) {
    return static_cast<int64_t>(entry.at(counter).get<double>());
  };
  Line line = {{"kind", kind}};
  const auto measured = [&](const char* field, double value) {
    if (!simulated) line[field] = value;
  };
  if (kind == "step") {
    line.update({{"row", words.at(1)},
                 {"active_experts", entry.at("active_experts")},
                 {"precision", words.at(2)},
                 {"sequences", whole("sequences")},
                 {"recompute", entry.at("label")},
                 {"loss", entry.at("loss")},
                 {"memory_bytes", whole("memory_bytes")}});
    measured("seconds", seconds);
    measured("tokens_per_second", entry.at("tokens/s").get<double>());
    return line;
  }
  const double flops = entry.value("flops", 0.0);
  const double bytes = entry.value("bytes", 0.0);
  line["name"] = words.at(3);
  if (kind == "ceiling") {
    line["shape"] = words.at(4);
    line["unit"] = flops > 0 ? "TFLOP/s" : "GB/s";
    measured("value", (flops > 0 ? 1e-12 * flops : 1e-9 * bytes) / seconds);
    return line;
  }
  if (kind == "time") line["operation"] = words.at(1);
  line["precision"] = words.at(2);
  line["shape"] = words.at(4);
  if (kind == "algorithm") line["choice"] = std::stoi(words.at(5));
  line["flops"] = flops;
  if (kind == "time") line["bytes"] = bytes;
  measured("seconds", seconds);
  return line;
}

}  // namespace

std::vector<Line> TimeLines(const Line& report, bool simulated) {
  std::vector<Line> lines;
  for (const Line& entry : report.at("benchmarks")) {
    // A failed benchmark appears as often as it was to be repeated.
    const bool counts = entry.value("aggregate_name", "median") == "median" &&
                        entry.value("repetition_index", 0) == 0;
    if (!counts) continue;
    Line line = TimeLine(entry, simulated);
    if (!line.is_null()) lines.push_back(std::move(line));
  }
  return lines;
}

Stage TimeStage(const std::string& name, const std::string& prefix,
                double burst, const StageOptions& options) {
  Stage stage = {.name = name, .seconds = Limit(90)};
  stage.command = {IsSimulated() ? Program("bench", "optimized/bench_simulated")
                                 : Program("bench", "optimized/bench"),
                   "--device=cuda", "--benchmark_filter=^" + prefix + "/",
                   "--benchmark_out=" + options.report.string()};
  if (IsSimulated()) {
    stage.command.emplace_back("--benchmark_min_time=0");
  } else {
    stage.command.insert(
        stage.command.end(),
        {fmt::format("--benchmark_min_time={}", burst),
         "--benchmark_repetitions=3", "--benchmark_report_aggregates_only=true",
         // Threads serve only initial parameters.
         fmt::format("--threads={}", AvailableCores())});
  }
  stage.report = options.report;
  stage.lines_of = [](const Line& report) {
    return TimeLines(report, IsSimulated());
  };
  return stage;
}

}  // namespace softmoe::gpu
