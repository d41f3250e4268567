// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/score.h"

#include <map>
#include <utility>

namespace softmoe::mutation {

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kKilled:
      return "KILLED";
    case Outcome::kSurvived:
      return "SURVIVED";
    case Outcome::kNotCovered:
      return "NOT_COVERED";
    case Outcome::kCrashed:
      return "CRASHED";
    case Outcome::kTimedOut:
      return "TIMED_OUT";
    case Outcome::kOtherError:
      return "OTHER_ERROR";
  }
  return "?";
}

Outcome JudgeRun(const Suite& suite, const SuiteRun& run) {
  if (run.hits == 0) return Outcome::kNotCovered;
  if (run.end == SuiteRun::End::kTimedOut) return Outcome::kTimedOut;
  if (run.end == SuiteRun::End::kSignalled) return Outcome::kCrashed;
  if (run.code == 0) return Outcome::kSurvived;
  return run.code == suite.failing_exit ? Outcome::kKilled
                                        : Outcome::kOtherError;
}

void Score::Add(MutantResult result) {
  if (result.mutant.area() != kCanaryArea) {
    results_.push_back(std::move(result));
    return;
  }
  if (result.good()) return;
  Void(std::string(result.mutant.id) + " was " + OutcomeName(result.outcome) +
       (result.argued() ? ": a program that computes the same must pass"
                        : ": a gross fault must be seen"));
}

std::vector<const MutantResult*> Score::Bad() const {
  std::vector<const MutantResult*> bad;
  for (const MutantResult& result : results_) {
    if (!result.good()) bad.push_back(&result);
  }
  return bad;
}

Count Score::Of(const std::string& area, const std::string& tier) const {
  std::map<std::string, bool> killed;  // whether all that count once together
  for (const MutantResult& result : results_) {
    const Mutant& mutant = result.mutant;
    if (!area.empty() && mutant.area() != area) continue;
    if (!tier.empty() && result.tier != tier) continue;
    if (result.argued() && result.good()) continue;
    const std::string& counted =
        mutant.counts_with.empty() ? mutant.id : mutant.counts_with;
    const bool is_killed =
        result.outcome == Outcome::kKilled && !result.argued();
    const auto [all, is_first] = killed.try_emplace(counted, is_killed);
    all->second = all->second && is_killed;
  }
  Count count;
  for (const auto& [counted, all] : killed) {
    ++count.total;
    count.killed += all;
  }
  return count;
}

Count Score::Total() const { return Of("", ""); }

int Score::Argued() const {
  int count = 0;
  for (const MutantResult& result : results_) {
    count += result.argued() && result.good();
  }
  return count;
}

ExitCode Score::exit_code() const {
  if (!void_reasons_.empty()) return ExitCode::kSelfCheck;
  return Bad().empty() ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace softmoe::mutation
