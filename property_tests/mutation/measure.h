// SPDX-License-Identifier: Apache-2.0
//
// measure.h - runs mutants against their suites, several at a time.
//
// First every suite needed runs without a mutant, because a suite that fails by
// itself kills nothing; then the canaries run, then the mutants.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_MEASURE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_MEASURE_H_

#include <functional>
#include <string>
#include <vector>

#include "property_tests/mutation/score.h"

namespace softmoe::mutation {

struct MeasureOptions {
  std::vector<Mutant> mutants;  // canaries among them
  std::vector<Suite> suites;
  int jobs = 1;
  // A run that exceeds both this and ten times the run without a mutant is
  // killed.
  double min_timeout = 30;
  double first_timeout = 600;  // for the runs without a mutant
  std::function<SuiteRun(const Suite&, const std::string& id, double timeout)>
      run;
  std::function<bool()> stop = [] { return false; };
  // Called with each result as it arrives, one at a time; the id of a run
  // without a mutant is "".
  std::function<void(const Suite&, const SuiteRun&)> on_clean_run =
      [](const Suite&, const SuiteRun&) {};
  std::function<void(const MutantResult&, const SuiteRun&)> on_result =
      [](const MutantResult&, const SuiteRun&) {};
};

// Stops early if a suite fails without a mutant or a canary is judged wrongly;
// the score is then void. Results follow the order of the mutants.
Score Measure(const MeasureOptions& options);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_MEASURE_H_
