// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/score.h"

#include <fmt/format.h>

#include <vector>

#include "core/text/text_table.h"
#include "golden/verdict/statistics.h"

namespace softmoe::mutation {
namespace {

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
