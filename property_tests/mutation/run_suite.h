// SPDX-License-Identifier: Apache-2.0
//
// run_suite.h - runs a suite in its own process, with at most one mutant
// switched on.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_RUN_SUITE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_RUN_SUITE_H_

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {

struct SuiteRun {
  enum class End { kExited, kSignalled, kTimedOut };
  End end = End::kExited;
  int code = 0;       // exit status, or the signal
  uint64_t hits = 0;  // how often the mutant's place was evaluated
  double seconds = 0;
  std::set<std::string> reached;  // of the ids that were asked for
  std::string output;             // stdout and stderr; at most the last 64 KiB
};

// Runs `suite` with fault `id` ("" for none) in its runfiles, with a fresh
// folder below `scratch`, and without the environment variables that concern
// this process itself. After `timeout` seconds it is killed, with everything
// that it started. Throws EnvironmentError if it cannot be started. `ids` are
// faults of which is asked whether their places were evaluated.
SuiteRun RunSuite(const Suite& suite, const std::string& id, double timeout,
                  const std::filesystem::path& scratch,
                  const std::vector<std::string>& ids = {});

// The shell command with which a person does the same without this driver.
std::string SuiteCommand(const Suite& suite, const std::string& id);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_RUN_SUITE_H_
