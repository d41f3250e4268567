// SPDX-License-Identifier: Apache-2.0
#include "golden/gpu_runs/gpu_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;

std::string DateOf(const GpuRecord& run) { return run.Only("facts")["date"]; }

// The lines of one operation, one for each precision.
std::vector<Json> LinesOf(const GpuRecord& run, const std::string& operation) {
  std::vector<Json> lines = run.All("operation");
  std::erase_if(lines,
                [&](const Json& line) { return line["name"] != operation; });
  return lines;
}

// "rmsnorm 1.25 ms (83 %), rmsnorm, backward 2.5 ms (80 %)" in one precision;
// "" if no time was taken.
std::string TimesOf(const GpuRecord& run, const std::string& operation,
                    const std::string& precision) {
  std::vector<std::string> times;
  for (const Json& line : run.All("time")) {
    if (line["operation"] != operation || line["precision"] != precision ||
        !line.contains("seconds")) {
      continue;
    }
    std::string text =
        fmt::format("{} {:.3g} ms", line["name"].get<std::string>(),
                    1e3 * JsonNumber(line, "seconds", "time"));
    if (line.contains("share")) {
      text +=
          fmt::format(" ({:.0f} %)", 100 * JsonNumber(line, "share", "time"));
    }
    times.push_back(text);
  }
  return fmt::format("{}", fmt::join(times, ", "));
}

// One run's finding about an operation.
std::string Finding(const GpuRecord& run, const std::string& operation,
                    const std::vector<Json>& lines) {
  std::vector<std::string> parts;
  for (const Json& line : lines) {
    const std::string precision = line["precision"];
    if (line["passed"] == false) {
      parts.push_back(fmt::format("{} **FAILED** ({} of {} cases)", precision,
                                  line["failures"].dump(),
                                  line["cases"].dump()));
      continue;
    }
    std::string text = fmt::format(
        "{}: {} cases, largest error/bound {:.2g}", precision,
        line["cases"].dump(), JsonNumber(line, "utilisation", "operation"));
    if (const std::string times = TimesOf(run, operation, precision);
        !times.empty()) {
      text += "; " + times;
    }
    parts.push_back(text);
  }
  const Json& facts = run.Only("facts");
  return fmt::format("{}, {}: {}", facts["model"].get<std::string>(),
                     DateOf(run), fmt::join(parts, "; "));
}

std::string StateOf(const std::vector<const GpuRecord*>& latest_first,
                    const std::string& operation, const std::string& hash) {
  std::string since;
  for (const GpuRecord* run : latest_first) {
    const std::vector<Json> lines = LinesOf(*run, operation);
    if (lines.empty()) continue;
    if (std::ranges::all_of(
            lines, [&](const Json& line) { return line["sources"] == hash; })) {
      return Finding(*run, operation, lines);
    }
    if (since.empty()) {
      since = " since its sources changed, after " + DateOf(*run);
    }
  }
  return "not verified on a device" + since;
}

}  // namespace

OperationSources ParseOperationSources(const std::string& text) {
  OperationSources sources;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string operation, hash, more;
    if (!(words >> operation >> hash) || hash.size() != 64 || words >> more) {
      throw DataError("operation_sources.txt: '" + line +
                      "' is no operation with a hash; build again");
    }
    sources.emplace_back(operation, hash);
  }
  return sources;
}

std::string GpuTable(const std::vector<GpuRecord>& runs,
                     const OperationSources& sources) {
  std::vector<const GpuRecord*> latest_first;
  for (const GpuRecord& run : runs) latest_first.push_back(&run);
  std::ranges::stable_sort(latest_first,
                           [](const GpuRecord* a, const GpuRecord* b) {
                             return DateOf(*a) > DateOf(*b);
                           });
  std::string text = "| operation | on a device |\n|-|-|\n";
  for (const auto& [operation, hash] : sources) {
    text += fmt::format("| {} | {} |\n", operation,
                        StateOf(latest_first, operation, hash));
  }
  return text;
}

}  // namespace softmoe::golden
