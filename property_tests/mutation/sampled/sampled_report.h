// SPDX-License-Identifier: Apache-2.0
//
// sampled_report.h - how good the tests are, judged by a sample.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_

#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "golden/document/decimal.h"
#include "property_tests/mutation/sampled/equivalents.h"
#include "property_tests/mutation/sampled/sampled_list.h"

namespace softmoe::mutation {

// The rate, and the lower end of its interval, that the tests must reach.
inline constexpr double kWantedRate = 0.95;
inline constexpr double kWantedLowerEnd = 0.90;
// At most this share of the counted faults may be argued equivalent.
inline constexpr double kMostArgued = 0.10;

struct SampledScore {
  int64_t total = 0;  // faults that can be killed: without equivalent ones
  int64_t failed = 0, crashed = 0, timed_out = 0;
  int64_t not_reached = 0, survived = 0;  // although they can be killed
  int64_t equal_objects = 0;              // equivalent: the same object code
  int64_t argued = 0;  // equivalent, as a second person has read

  int64_t killed() const { return failed + crashed + timed_out; }
  double rate() const;  // killed share of `total`; 0 if there are none
  // The rate's 95 % interval (Clopper-Pearson).
  golden::Interval interval() const;
};

class SampledReport {
 public:
  // Throws DataError for an argument that does not hold: about a fault that was
  // killed or is not in its seed's list, or more arguments than allowed.
  SampledReport(const SampledList& list,
                const std::map<std::string, Equivalent>& equivalents);

  const SampledScore& score() const { return score_; }
  // Results by package and in total; what was not drawn; every survivor with
  // its text.
  std::string Text() const;
  // 0: 95 % are killed, and the interval starts at 90 % or more; 4: too few
  // faults to say, or incomplete; 1: fewer are killed.
  ExitCode exit_code() const;

 private:
  const SampledList& list_;
  std::map<std::string, Equivalent> equivalents_;
  SampledScore score_;
  std::map<std::string, SampledScore> packages_, changes_;
  std::vector<const SampledFault*> alive_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_
