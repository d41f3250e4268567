// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/sampled_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/errors.h"

namespace softmoe::mutation {

std::string TableOfIds(const std::vector<DrawnFault>& faults) {
  std::string table;
  for (const DrawnFault& fault : faults) table += "- " + fault.id + "\n";
  return table;
}

std::set<std::string> TickedIds(const std::string& table) {
  std::set<std::string> ids;
  std::istringstream lines(table);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("+ ")) ids.insert(line.substr(2));
  }
  return ids;
}

std::vector<const Suite*> SuitesFor(
    const std::string& id, const std::vector<Suite>& suites,
    const std::map<std::string, CleanRun>& clean) {
  std::vector<const Suite*> result;
  for (const Suite& suite : suites) {
    const auto found = clean.find(suite.name);
    if (found != clean.end() && found->second.passed &&
        found->second.reached.contains(id)) {
      result.push_back(&suite);
    }
  }
  std::ranges::stable_sort(result, {}, [&](const Suite* suite) {
    return clean.at(suite->name).seconds;
  });
  return result;
}

std::optional<SampledFault> TryToKill(
    SampledFault fault, const std::vector<const Suite*>& suites,
    const std::map<std::string, CleanRun>& clean, const KillOptions& options) {
  fault.fate = suites.empty() ? Fate::kNotReached : Fate::kSurvived;
  for (const Suite* suite : suites) {
    if (options.stop()) return std::nullopt;
    const double timeout =
        std::max(options.least_timeout, 10 * clean.at(suite->name).seconds);
    const SuiteRun run = options.run(*suite, fault.fault.id, timeout);
    // Ctrl-C may have ended the run.
    if (options.stop()) return std::nullopt;
    ++fault.suites;
    fault.seconds += run.seconds;
    if (run.hits == 0) continue;  // whatever it says, not because of this
    if (run.end == SuiteRun::End::kTimedOut) {
      fault.fate = Fate::kTimedOut;
    } else if (run.end == SuiteRun::End::kSignalled || run.code > 128) {
      fault.fate = Fate::kCrashed;
    } else if (run.code != 0) {
      fault.fate = Fate::kFailed;
    } else {
      continue;
    }
    fault.suite = suite->name;
    break;
  }
  return fault;
}

std::vector<DrawnFault> DrawFaults(
    const std::vector<Place>& places, int64_t wanted, SampledList& list,
    const std::function<
        std::vector<std::string>(const std::vector<DrawnFault>&)>& check,
    const std::function<bool(const std::vector<DrawnFault>&)>& stand_together,
    const std::function<SampledFault(const DrawnFault&)>& describe) {
  SOFTMOE_CHECK(list.run().has_value());
  const SampledRun& run = *list.run();
  Drawer drawer(places, run.seed, IdPrefix(run));
  std::vector<DrawnFault> chosen;
  while (static_cast<int64_t>(chosen.size()) < wanted) {
    // Examines at least as many as are wanted in one batch.
    std::vector<DrawnFault> drawn, unknown;
    while (static_cast<int64_t>(chosen.size() + drawn.size()) < wanted) {
      if (drawer.IsAtEnd()) {
        throw ConfigError(fmt::format(
            "--sampled {}: of {} places only {} have a fault that compiles; "
            "ask for fewer",
            wanted, places.size(), chosen.size() + drawn.size()));
      }
      DrawnFault fault = drawer.Next();
      list.RequireSame(fault);
      const SampledFault* known = list.Find(fault.id);
      if (known != nullptr && !IsDrawn(known->fate)) continue;
      if (known == nullptr) unknown.push_back(fault);
      drawn.push_back(std::move(fault));
    }
    const std::vector<std::string> problems = check(unknown);
    std::map<std::string, std::string> by_id;
    for (size_t i = 0; i < unknown.size(); ++i) {
      by_id[unknown[i].id] = problems.at(i);
    }
    for (DrawnFault& fault : drawn) {
      std::string problem = by_id[fault.id];
      chosen.push_back(fault);
      if (problem.empty() && !stand_together(chosen)) {
        problem = "overlaps one that was drawn before";
      }
      if (problem.empty()) continue;
      chosen.pop_back();
      SampledFault failed = describe(fault);
      failed.fate = Fate::kDoesNotCompile;
      failed.reason = problem;
      list.Add(failed);
    }
  }
  return chosen;
}

}  // namespace softmoe::mutation
