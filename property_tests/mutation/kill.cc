// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/kill.h"

#include <algorithm>
#include <mutex>

#include "property_tests/mutation/for_all.h"

namespace softmoe::mutation {

void RunWithoutFaults(
    const std::vector<const Suite*>& suites, const KillOptions& options,
    const std::function<void(const Suite&, const CleanRun&,
                             const std::string& output)>& tell) {
  std::mutex mutex;
  ForAll(suites.size(), options.jobs, options.stop, [&](size_t i) {
    const SuiteRun run = options.run(*suites[i], "", options.first_timeout);
    // Ctrl-C may have ended it.
    if (options.stop()) return;
    const bool passed = run.end == SuiteRun::End::kExited && run.code == 0;
    const std::lock_guard lock(mutex);
    tell(*suites[i], {passed, run.seconds, run.reached}, run.output);
  });
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

std::optional<MeasuredFault> TryToKill(
    MeasuredFault fault, const std::vector<const Suite*>& suites,
    const std::map<std::string, CleanRun>& clean, const KillOptions& options) {
  fault.fate = Fate::kNotReached;
  for (const Suite* suite : suites) {
    if (options.stop()) return std::nullopt;
    const double timeout =
        std::max(options.least_timeout, 10 * clean.at(suite->name).seconds);
    const SuiteRun run = options.run(*suite, fault.fault.id, timeout);
    if (options.stop()) return std::nullopt;
    ++fault.suites;
    fault.seconds += run.seconds;
    const Fate fate = JudgeRun(*suite, run);
    // Where this suite does not reach it, another one may have.
    if (fate != Fate::kNotReached) fault.fate = fate;
    if (IsKilled(fate)) {
      fault.suite = suite->name;
      break;
    }
  }
  return fault;
}

}  // namespace softmoe::mutation
