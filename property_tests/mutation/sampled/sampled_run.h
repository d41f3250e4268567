// SPDX-License-Identifier: Apache-2.0
//
// sampled_run.h - the steps from a list of drawn faults to their fates.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_RUN_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_RUN_H_

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "property_tests/mutation/run_suite.h"
#include "property_tests/mutation/sampled/draw.h"
#include "property_tests/mutation/sampled/sampled_list.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {

// A suite's run without any fault.
struct CleanRun {
  bool passed = false;
  double seconds = 0;
  std::set<std::string> reached;  // ids
};

// A table of unticked ids, as switch.h wants it; and the ids ticked in one.
std::string TableOfIds(const std::vector<DrawnFault>& faults);
std::set<std::string> TickedIds(const std::string& table);

// The suites that reach `id` and pass without a fault, quickest first.
std::vector<const Suite*> SuitesFor(
    const std::string& id, const std::vector<Suite>& suites,
    const std::map<std::string, CleanRun>& clean);

struct KillOptions {
  // A run that exceeds both this and ten times the run without a fault is
  // ended.
  double least_timeout = 30;
  std::function<SuiteRun(const Suite&, const std::string& id, double timeout)>
      run;
  std::function<bool()> stop = [] { return false; };
};

// Runs the suites with this fault switched on until one kills it. `fault` has
// its text; returns it with its fate, nullopt if stopped.
std::optional<SampledFault> TryToKill(
    SampledFault fault, const std::vector<const Suite*>& suites,
    const std::map<std::string, CleanRun>& clean, const KillOptions& options);

// Faults that compile, as many as `wanted`, in the order in which they are
// drawn for `list`, which is begun. `check` returns the problem of each of many
// faults ("": none), and is asked only about those unknown to `list`; faults
// that do not compile are added to it. Faults that the list calls broken stay
// out. Throws ConfigError if there are too few places, StoppedError.
std::vector<DrawnFault> DrawFaults(
    const std::vector<Place>& places, int64_t wanted, SampledList& list,
    const std::function<
        std::vector<std::string>(const std::vector<DrawnFault>&)>& check,
    const std::function<bool(const std::vector<DrawnFault>&)>& stand_together,
    const std::function<SampledFault(const DrawnFault&)>& describe);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_RUN_H_
