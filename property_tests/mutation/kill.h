// SPDX-License-Identifier: Apache-2.0
//
// kill.h - runs suites without any fault, and then with a fault until a test
// notices it.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_KILL_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_KILL_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/errors.h"
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
  // A run is ended if it takes longer than this and than ten times the run
  // without a fault.
  double least_timeout = 30;
  // Runs a suite; the id is "" for a run without a fault. The result is dropped
  // if `stop` holds by then.
  std::function<SuiteRun(const Suite&, const std::string& id, double timeout)>
      run;
  std::function<bool()> stop = [] { return false; };
};

// A run was ended by SIGKILL twice, as the system does where memory is short.
class ShortOfMemory : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

// Runs each suite without a fault, and calls `tell` as each ends, one at a
// time. Repeats a run that SIGKILL ends; throws ShortOfMemory the second time.
void RunWithoutFaults(
    const std::vector<const Suite*>& suites, const KillOptions& options,
    const std::function<void(const Suite&, const CleanRun&,
                             const std::string& output)>& tell);

// Returns the suites that reach `id` and pass without a fault, quickest first.
std::vector<const Suite*> SuitesFor(
    const std::string& id, const std::vector<Suite>& suites,
    const std::map<std::string, CleanRun>& clean);

// Runs the suites with this fault on until one kills it. `fault` has its text;
// returns it with its fate, or nullopt if stopped. Treats SIGKILL as above,
// except that if only one job runs, a second SIGKILL is blamed on the fault,
// which may be what takes the memory.
std::optional<MeasuredFault> TryToKill(
    MeasuredFault fault, const std::vector<const Suite*>& suites,
    const std::map<std::string, CleanRun>& clean, const KillOptions& options);

// Calls `attempt` with each of `count` indices, several at a time. For each
// index for which it throws ShortOfMemory, calls it again once all others are
// done, one at a time.
void ForAllAndThenAlone(
    size_t count, const KillOptions& options,
    const std::function<void(size_t, const KillOptions&)>& attempt);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_KILL_H_
