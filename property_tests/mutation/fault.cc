// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/fault.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/errors.h"
#include "core/text/text_table.h"
#include "golden/verdict/statistics.h"

namespace softmoe::mutation {
namespace {

// The names of fates, by their values.
constexpr std::array<const char*, 8> kNames = {
    "DOES_NOT_COMPILE", "BREAKS_THE_BUILD", "NOT_REACHED", "SURVIVED",
    "KILLED",           "CRASHED",          "TIMED_OUT",   "OTHER_ERROR"};

constexpr Fate kShown[] = {Fate::kFailed,   Fate::kCrashed,
                           Fate::kTimedOut, Fate::kOtherError,
                           Fate::kSurvived, Fate::kNotReached};

std::string IntervalText(const Score& score) {
  const golden::Interval interval = score.interval();
  return fmt::format("[{:.1f}, {:.1f}]", 100 * interval.low,
                     100 * interval.high);
}

void AddRow(const std::string& name, const Score& score, TextTable& table) {
  std::vector<std::string> row = {name, std::to_string(score.total)};
  for (const Fate fate : kShown) {
    const auto found = score.fates.find(fate);
    row.push_back(
        std::to_string(found == score.fates.end() ? 0 : found->second));
  }
  row.push_back(std::to_string(score.equal_objects + score.argued));
  row.push_back(score.total == 0 ? "-"
                                 : fmt::format("{:.1f} %", 100 * score.rate()));
  row.push_back(score.total == 0 ? "-" : IntervalText(score));
  table.Add(row);
}

}  // namespace

const char* FateName(Fate fate) { return kNames.at(static_cast<size_t>(fate)); }

Fate FateOf(const std::string& name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Fate>(i);
  }
  throw DataError("no fault has the outcome '" + name + "'");
}

bool IsKilled(Fate fate) { return fate >= Fate::kFailed; }

bool IsBuilt(Fate fate) { return fate >= Fate::kNotReached; }

Fate JudgeRun(const Suite& suite, const SuiteRun& run) {
  if (run.hits == 0) return Fate::kNotReached;
  if (run.end == SuiteRun::End::kTimedOut) return Fate::kTimedOut;
  if (run.Signal() != 0) return Fate::kCrashed;
  if (run.code == 0) return Fate::kSurvived;
  return suite.failing_exit == kAnyFailingExit || run.code == suite.failing_exit
             ? Fate::kFailed
             : Fate::kOtherError;
}

nlohmann::ordered_json FaultJson(const MeasuredFault& measured) {
  const PlacedFault& fault = measured.fault;
  const bool is_statement = fault.syntax == Syntax::kStatement;
  nlohmann::ordered_json json = {
      {"id", fault.id},
      {"file", fault.file},
      {"line", measured.line},
      {"begin", fault.span.begin},
      {"end", fault.span.end},
      {"change", fault.kind},
      {is_statement ? "statement" : "expression", measured.original},
      {"instead", fault.instead},
      {"outcome", FateName(measured.fate)}};
  if (!measured.suite.empty()) json["suite"] = measured.suite;
  if (measured.signal != 0) json["signal"] = measured.signal;
  if (!measured.reason.empty()) json["reason"] = measured.reason;
  if (IsBuilt(measured.fate)) {
    json["suites"] = measured.suites;
    json["seconds"] = measured.seconds;
  }
  if (measured.equal_objects) json["equal_objects"] = true;
  return json;
}

void Score::Add(Fate fate, bool is_killed) {
  ++total;
  ++fates[fate];
  killed += is_killed;
}

double Score::rate() const {
  return total == 0 ? 0 : static_cast<double>(killed) / total;
}

golden::Interval Score::interval() const {
  if (total == 0) return {0, 1};
  return golden::ExactProportionInterval(killed, total, 0.95);
}

std::string Score::Text(const std::string& where) const {
  return fmt::format("{} of {} killed{}: {:.1f} % {}", killed, total, where,
                     100 * rate(), IntervalText(*this));
}

std::string ScoreTable(const std::string& what,
                       const std::map<std::string, Score>& scores,
                       const Score& all) {
  TextTable table({what, "faults", "failed", "crashed", "timed out",
                   "other error", "survived", "not reached", "equivalent",
                   "killed", "95 % interval"});
  for (const auto& [name, score] : scores) AddRow(name, score, table);
  AddRow("all", all, table);
  return table.Text();
}

}  // namespace softmoe::mutation
