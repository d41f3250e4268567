// SPDX-License-Identifier: Apache-2.0
//
// kill.h - runs suites without any fault, and then with one until a test
// notices.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_KILL_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_KILL_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {

// What happened when a suite ran without any fault.
struct CleanRun {
  bool passed = false;
  double seconds = 0;
  std::set<std::string> reached;  // ids
};

struct KillOptions {
  int jobs = 1;
  double first_timeout = 1800;  // of a run without a fault
  // A run that takes longer than this, and than ten times as long as without a
  // fault, is ended.
  double least_timeout = 30;
  // The id is "" for a run without a fault.
  std::function<SuiteRun(const Suite&, const std::string& id, double timeout)>
      run;
  std::function<bool()> stop = [] { return false; };
};

// Runs each suite without a fault, and tells of each as it ends, one at a time.
void RunWithoutFaults(
    const std::vector<const Suite*>& suites, const KillOptions& options,
    const std::function<void(const Suite&, const CleanRun&,
                             const std::string& output)>& tell);

// The suites that reach `id` and pass without a fault, quickest first.
std::vector<const Suite*> SuitesFor(
    const std::string& id, const std::vector<Suite>& suites,
    const std::map<std::string, CleanRun>& clean);

// Runs the suites with this fault on until one kills it. `fault` has its text;
// returns it with its fate. Nothing if it was stopped.
std::optional<MeasuredFault> TryToKill(
    MeasuredFault fault, const std::vector<const Suite*>& suites,
    const std::map<std::string, CleanRun>& clean, const KillOptions& options);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_KILL_H_
