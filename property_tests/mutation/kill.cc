// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/kill.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <mutex>

#include "property_tests/mutation/for_all.h"

namespace softmoe::mutation {
namespace {

// Returns a run that nothing but the suite or its fault has ended.
SuiteRun RunUndisturbed(const Suite& suite, const std::string& id,
                        double timeout, const KillOptions& options) {
  SuiteRun run = options.run(suite, id, timeout);
  if (run.Signal() != SIGKILL || options.stop()) return run;
  run = options.run(suite, id, timeout);
  const bool may_be_the_fault = !id.empty() && options.jobs == 1;
  if (run.Signal() != SIGKILL || options.stop() || may_be_the_fault) {
    return run;
  }
  throw ShortOfMemory(fmt::format(
      "{} {} was killed by SIGKILL twice, as happens when memory is short; "
      "nothing was recorded for it: start again, with fewer --jobs",
      suite.name, id.empty() ? "without a fault" : "with " + id));
}

}  // namespace

void RunWithoutFaults(
    const std::vector<const Suite*>& suites, const KillOptions& options,
    const std::function<void(const Suite&, const CleanRun&,
                             const std::string& output)>& tell) {
  std::mutex mutex;
  ForAll(suites.size(), options.jobs, options.stop, [&](size_t i) {
    const SuiteRun run =
        RunUndisturbed(*suites[i], "", options.first_timeout, options);
    // Ctrl-C may have ended the run (RunSuite).
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
    const SuiteRun run =
        RunUndisturbed(*suite, fault.fault.id, timeout, options);
    if (options.stop()) return std::nullopt;
    ++fault.suites;
    fault.seconds += run.seconds;
    const Fate fate = JudgeRun(*suite, run);
    // If this suite does not reach the fault, another one may have.
    if (fate != Fate::kNotReached) fault.fate = fate;
    if (IsKilled(fate)) {
      fault.suite = suite->name;
      fault.signal = run.Signal();
      break;
    }
  }
  return fault;
}

void ForAllAndThenAlone(
    size_t count, const KillOptions& options,
    const std::function<void(size_t, const KillOptions&)>& attempt) {
  std::mutex mutex;
  std::vector<size_t> left;
  ForAll(count, options.jobs, options.stop, [&](size_t i) {
    try {
      attempt(i, options);
    } catch (const ShortOfMemory&) {
      const std::lock_guard lock(mutex);
      left.push_back(i);
    }
  });
  KillOptions alone = options;
  alone.jobs = 1;
  ForAll(left.size(), 1, options.stop,
         [&](size_t i) { attempt(left[i], alone); });
}

}  // namespace softmoe::mutation
