// SPDX-License-Identifier: Apache-2.0
//
// chosen_run.h - runs chosen faults against the suites that they name, and
// scores the result.
//
// First, every suite that is needed runs without a fault, because a suite that
// fails by itself kills nothing. Then the canaries run, and last the faults.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_CHOSEN_RUN_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_CHOSEN_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/fault_table.h"
#include "property_tests/mutation/kill.h"

namespace softmoe::mutation {

struct ChosenFault {
  Fault fault;
  MeasuredFault measured;  // its place, and its fate once known

  bool argued() const { return !fault.equivalent_because.empty(); }
  // Killed by a test that failed, or survived as its argument says.
  bool good() const {
    return measured.fate == (argued() ? Fate::kSurvived : Fate::kFailed);
  }
};

struct ChosenOptions {
  std::vector<ChosenFault> faults;  // including canaries
  std::vector<Suite> suites;        // that the faults name
  KillOptions kill;
  // Called with each result as it arrives, one at a time.
  std::function<void(const Suite&, const CleanRun&, const std::string& output)>
      on_clean_run = [](const Suite&, const CleanRun&, const std::string&) {};
  std::function<void(const ChosenFault&)> on_result = [](const ChosenFault&) {};
};

struct ChosenScore {
  std::vector<ChosenFault> results;  // of the faults that ran, without canaries
  // Why the measurement is void; every report says this first.
  std::vector<std::string> void_reasons;

  std::vector<const ChosenFault*> Bad() const;
  // Scores the faults for which `has` holds. Where several count once
  // (Fault::counts_with), all of them must be killed.
  Score Of(const std::function<bool(const ChosenFault&)>& has) const;
  Score Total() const;
  std::string Text() const;
  // 6 if void; 1 if a fault is Bad(); else 0.
  ExitCode exit_code() const;
};

// Stops early if a suite fails without a fault or a canary is missing or judged
// wrongly; the score is then void. Results are in the order of the faults.
ChosenScore Measure(const ChosenOptions& options);

// "KILLED id (suite, 0.1 s)".
std::string ResultLine(const ChosenFault& result);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_CHOSEN_RUN_H_
