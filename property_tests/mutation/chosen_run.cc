// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/chosen_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace softmoe::mutation {
namespace {

class Measurement {
 public:
  explicit Measurement(const ChosenOptions& options) : options_(options) {}

  ChosenScore Run() {
    std::vector<ChosenFault> canaries, others;
    for (const ChosenFault& fault : options_.faults) {
      (fault.fault.area() == kCanaryArea ? canaries : others).push_back(fault);
    }
    if (canaries.size() < 2) Void("no canary among the faults");
    RunSuites();
    if (score_.void_reasons.empty()) JudgeCanaries(Kill(std::move(canaries)));
    if (score_.void_reasons.empty()) score_.results = Kill(std::move(others));
    return std::move(score_);
  }

 private:
  void Void(const std::string& reason) {
    score_.void_reasons.push_back(reason);
  }

  void RunSuites() {
    std::vector<const Suite*> needed;
    for (const Suite& suite : options_.suites) needed.push_back(&suite);
    RunWithoutFaults(needed, options_.kill,
                     [&](const Suite& suite, const CleanRun& run,
                         const std::string& output) {
                       clean_[suite.name] = run;
                       if (!run.passed) {
                         Void(suite.name + " fails without any fault");
                       }
                       options_.on_clean_run(suite, run, output);
                     });
  }

  // Returns the faults that were not stopped, with their fates.
  std::vector<ChosenFault> Kill(std::vector<ChosenFault> faults) {
    std::vector<char> done(faults.size());
    std::mutex mutex;
    ForAllAndThenAlone(
        faults.size(), options_.kill, [&](size_t i, const KillOptions& kill) {
          const Suite& suite = *std::ranges::find(
              options_.suites, faults[i].fault.suite, &Suite::name);
          auto measured = TryToKill(faults[i].measured, {&suite}, clean_, kill);
          if (!measured) return;
          const std::lock_guard lock(mutex);
          faults[i].measured = *std::move(measured);
          done[i] = true;
          options_.on_result(faults[i]);
        });
    std::vector<ChosenFault> results;
    for (size_t i = 0; i < faults.size(); ++i) {
      if (done[i]) results.push_back(std::move(faults[i]));
    }
    return results;
  }

  void JudgeCanaries(const std::vector<ChosenFault>& canaries) {
    for (const ChosenFault& canary : canaries) {
      if (canary.good()) continue;
      Void(canary.fault.id + " was " + FateName(canary.measured.fate) +
           (canary.argued() ? ": a program that computes the same must pass"
                            : ": a gross fault must be seen"));
    }
  }

  const ChosenOptions& options_;
  std::map<std::string, CleanRun> clean_;
  ChosenScore score_;
};

}  // namespace

ChosenScore Measure(const ChosenOptions& options) {
  return Measurement(options).Run();
}

std::vector<const ChosenFault*> ChosenScore::Bad() const {
  std::vector<const ChosenFault*> bad;
  for (const ChosenFault& result : results) {
    if (!result.good()) bad.push_back(&result);
  }
  return bad;
}

Score ChosenScore::Of(
    const std::function<bool(const ChosenFault&)>& has) const {
  Score score;
  std::map<std::string, const ChosenFault*> counted;  // one of each, bad first
  for (const ChosenFault& result : results) {
    if (!has(result)) continue;
    if (result.argued() && result.good()) {
      ++score.argued;
      continue;
    }
    const std::string& id = result.fault.counts_with.empty()
                                ? result.fault.id
                                : result.fault.counts_with;
    const auto [found, is_first] = counted.try_emplace(id, &result);
    if (!is_first && !result.good()) found->second = &result;
  }
  for (const auto& [id, result] : counted) {
    score.Add(result->measured.fate, result->good());
  }
  return score;
}

Score ChosenScore::Total() const {
  return Of([](const ChosenFault&) { return true; });
}

std::string ChosenScore::Text() const {
  std::string text;
  for (const std::string& reason : void_reasons) {
    text += "VOID: " + reason + "\n";
  }
  if (results.empty()) return text + "no fault was planted\n";
  std::map<std::string, Score> areas;
  for (const ChosenFault& result : results) {
    const std::string area = result.fault.area();
    if (areas.contains(area)) continue;
    areas[area] =
        Of([&](const auto& other) { return other.fault.area() == area; });
  }
  text += ScoreTable("area", areas, Total());
  for (const ChosenFault* bad : Bad()) {
    text += fmt::format(
        "{}{} {} by {}: {}\n  REPRO ./bazelw run //:verify -- mutate --mutant "
        "{} --output\n",
        bad->argued() ? "argued to be equivalent, but " : "",
        FateName(bad->measured.fate), bad->fault.id, bad->fault.suite,
        bad->fault.fault, bad->fault.id);
  }
  return text + fmt::format(
                    "\n{}; {} more argued equivalent; {} planted in all, of "
                    "which some count together{}\n",
                    Total().Text(), Total().argued, results.size(),
                    void_reasons.empty() ? "" : "; VOID, see above");
}

ExitCode ChosenScore::exit_code() const {
  if (!void_reasons.empty()) return ExitCode::kSelfCheck;
  return Bad().empty() ? ExitCode::kDone : ExitCode::kFailed;
}

std::string ResultLine(const ChosenFault& result) {
  return fmt::format(
      "{:<11} {}  ({}, {:.1f} s{})", FateName(result.measured.fate),
      result.fault.id, result.fault.suite, result.measured.seconds,
      result.argued() && result.good() ? ", argued equivalent" : "");
}

}  // namespace softmoe::mutation
