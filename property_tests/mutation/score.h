// SPDX-License-Identifier: Apache-2.0
//
// score.h - the outcome of each mutant, the score of the tests, and when it is
// void.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/mutation/mutants.h"
#include "property_tests/mutation/run_suite.h"

namespace softmoe::mutation {

enum class Outcome {
  kKilled,      // evaluated, and the suite reports a failure
  kSurvived,    // evaluated, and the suite passes
  kNotCovered,  // never evaluated, whatever the suite reports
  kCrashed,     // ended by a signal; no test noticed
  kTimedOut,
  kOtherError,  // an exit code other than a failed test's
};
const char* OutcomeName(Outcome outcome);  // "KILLED", ...

// Judges only by exit code and hits; a suite's output is never read.
Outcome JudgeRun(const Suite& suite, const SuiteRun& run);

struct MutantResult {
  Mutant mutant;
  std::string tier;  // the suite's
  Outcome outcome = Outcome::kNotCovered;
  uint64_t hits = 0;
  double seconds = 0;
  int code = 0;

  bool argued() const { return !mutant.equivalent_because.empty(); }
  // Killed, or survived as argued.
  bool good() const {
    return outcome == (argued() ? Outcome::kSurvived : Outcome::kKilled);
  }
};

// Mutants of one kind in one function (Mutant::counts_with) count once, as
// killed if all of them are.
struct Count {
  int killed = 0;
  int total = 0;  // without those argued equivalent
};

class Score {
 public:
  void Add(MutantResult result);
  // Declares the measurement meaningless, which every report then says first.
  void Void(const std::string& reason) { void_reasons_.push_back(reason); }
  void set_seconds(double seconds) { seconds_ = seconds; }
  double seconds() const { return seconds_; }

  const std::vector<std::string>& void_reasons() const { return void_reasons_; }
  // Without the canaries.
  const std::vector<MutantResult>& results() const { return results_; }
  std::vector<const MutantResult*> Bad() const;
  Count Total() const;
  Count Of(const std::string& area, const std::string& tier) const;
  int Argued() const;  // equivalent and not killed

  // 6 void; 1 a mutant that is neither killed nor argued equivalent; else 0.
  ExitCode exit_code() const;

 private:
  std::vector<MutantResult> results_;
  std::vector<std::string> void_reasons_;
  double seconds_ = 0;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_H_
