// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/metrics_log.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/files/atomic_file.h"
#include "trainer/results/metrics.h"

namespace softmoe::trainer {
namespace {

using Json = nlohmann::ordered_json;

Json RunLine(const RunIdentity& identity, const TrainState& state) {
  Json line = {{"kind", "run"},
               {"version", kMetricsLogVersion},
               {"config_hash", ConfigHash(identity.config)},
               {"router", RouterKindName(identity.config.router.kind)},
               {"steps", identity.config.training.steps},
               {"seed", identity.config.training.seed},
               {"tau", state.tau},
               {"tau_calibrated", state.tau_calibrated}};
  VisitIdentityTexts(identity, [&](IdentityPart part, const char* name,
                                   const std::string& text) {
    const bool optional =
        part == IdentityPart::kDevice || part == IdentityPart::kRanks;
    if (!optional || !text.empty()) line[name] = text;
  });
  return line;
}

Json Line(const StepRecord& record) {
  Json line = {{"kind", "step"}, {"step", record.step}};
  VisitStepMetrics([&](const Metric& metric, auto member) {
    line[metric.name] = record.*member;
  });
  return line;
}

Json Line(const EvaluationRecord& record) {
  Json line = {{"kind", "validation"}, {"step", record.step}};
  VisitEvaluationMetrics([&](const Metric& metric, auto member) {
    line[metric.name] = record.*member;
  });
  return line;
}

// Writes the lines of a log that `state` knows, and returns the path.
const std::filesystem::path& Rewrite(const std::filesystem::path& path,
                                     const RunIdentity& identity,
                                     const TrainState& state) {
  AtomicFile file(path);
  file.Write(JsonLine(RunLine(identity, state)) + "\n");
  auto evaluation = state.evaluations.begin();
  for (const StepRecord& record : state.history) {
    file.Write(JsonLine(Line(record)) + "\n");
    for (; evaluation != state.evaluations.end() &&
           evaluation->step == record.step;
         ++evaluation) {
      file.Write(JsonLine(Line(*evaluation)) + "\n");
    }
  }
  file.Commit();
  return path;
}

}  // namespace

int64_t LoggedSteps(const std::filesystem::path& path) {
  std::ifstream lines(path);
  int64_t steps = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(R"({"kind":"step",)")) ++steps;
  }
  return steps;
}

void RequireReplaceableLog(const std::filesystem::path& path) {
  std::error_code unreadable;  // then opening reports it
  if (!std::filesystem::is_regular_file(path, unreadable)) return;
  constexpr std::string_view kBegin = R"({"kind":"run",)";
  std::string begin(kBegin.size(), '\0');
  std::ifstream file(path);
  file.read(begin.data(), std::ssize(begin));
  begin.resize(static_cast<size_t>(file.gcount()));
  if (kBegin.starts_with(begin) ||
      begin.find_first_not_of('\0') == std::string::npos) {
    return;
  }
  throw ConfigError(fmt::format(
      "{}: already exists and is not the log of a run; choose another output "
      "folder, or move it away",
      path.string()));
}

DataError LogError(const std::string& place, const std::string& problem) {
  return DataError(fmt::format(
      "{}: {}; repeating the same grid `run` rewrites the log of an unfinished "
      "run; for a finished run, delete its folder first",
      place, problem));
}

LogCheck::LogCheck(std::string config_hash)
    : config_hash_(std::move(config_hash)) {}

bool LogCheck::Line(const Json& line, const std::string& place) {
  const auto kind = line.find("kind");
  const bool begins = kind != line.end() && *kind == "run";
  if (!begins && !begun_) {
    throw LogError(place,
                   "the first line does not say which run it belongs to");
  }
  begun_ = true;
  if (begins) {
    std::string hash;
    if (!TakeField(line, "config_hash", &hash)) {
      throw LogError(place, "a log without 'config_hash'");
    }
    if (hash == config_hash_) return false;
    throw LogError(place,
                   fmt::format("a log of configuration {}, but its folder is "
                               "that of {}: move it back where it came from",
                               hash, config_hash_));
  }
  if (kind == line.end() || *kind != "step") return false;
  int64_t step = 0;
  if (!TakeField(line, "step", &step) || step != steps_ + 1) {
    throw LogError(place, fmt::format("'step' is not {}, the next one: lines "
                                      "are missing, or of another run",
                                      steps_ + 1));
  }
  steps_ = step;
  return true;
}

MetricsLog::MetricsLog(const std::filesystem::path& path,
                       const RunIdentity& identity, const TrainState& state)
    : file_(Rewrite(path, identity, state)) {}

void MetricsLog::Add(const StepRecord& record) { file_.Write(Line(record)); }

void MetricsLog::Add(const EvaluationRecord& record) {
  file_.Write(Line(record));
}

}  // namespace softmoe::trainer
