// SPDX-License-Identifier: Apache-2.0
#include "golden/gpu_runs/gpu_conclusions.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/files/json_lines.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;

double NumberOr0(const Json& line, const char* key) {
  return line.contains(key) ? JsonNumber(line, key, key) : 0;
}

// The name of a line that did not pass.
std::string NameOfFailure(const Json& line) {
  const std::string name = line["name"];
  return line["kind"] == "operation"
             ? fmt::format("operation {} ({})", name,
                           line["precision"].get<std::string>())
             : line["kind"].get<std::string>() + " \"" + name + "\"";
}

}  // namespace

void GpuCeilings::Look(const Json& line) {
  if (line["kind"] == "ceiling" && line.contains("value")) {
    values_[line["name"].get<std::string>()] = NumberOr0(line, "value");
  }
}

std::optional<double> GpuCeilings::ShareOf(const Json& line) const {
  if (!line.contains("seconds") || !line.contains("precision")) return {};
  if (line["kind"] != "time" && line["kind"] != "algorithm") return {};
  const auto product =
      values_.find("product " + line["precision"].get<std::string>());
  const auto copy = values_.find("copy");
  if (product == values_.end() || copy == values_.end()) return {};
  const double least =
      std::max(NumberOr0(line, "flops") / (product->second * 1e12),
               NumberOr0(line, "bytes") / (copy->second * 1e9));
  return least / NumberOr0(line, "seconds");
}

void GpuFailures::Look(const Json& line) {
  if (line["kind"] == "stage") {
    const std::string outcome = line["outcome"];
    // Failures already reported by name are not repeated.
    if (outcome != "passed" && outcome != "not run" &&
        names_.size() == before_) {
      names_.push_back(fmt::format("stage \"{}\" ({})",
                                   line["name"].get<std::string>(), outcome));
    }
    before_ = names_.size();
  } else if (line["kind"] != "end" && line.contains("passed") &&
             line["passed"] == false) {
    names_.push_back(NameOfFailure(line));
  }
}

std::string GpuFailures::Text() const {
  return fmt::format("{}", fmt::join(names_, "; "));
}

}  // namespace softmoe::golden
