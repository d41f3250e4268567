// SPDX-License-Identifier: Apache-2.0
//
// sampled_report.h - how good the tests are, as far as a sample says.
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

// What the tests must reach on a sample.
inline constexpr double kWantedRate = 0.95;
inline constexpr double kWantedLowerEnd = 0.90;
// Of those that count, at most this part may be argued equivalent.
inline constexpr double kMostArgued = 0.10;

struct SampledScore {
  int64_t total = 0;  // that can be killed: without the equivalent ones
  int64_t failed = 0, crashed = 0, timed_out = 0;
  int64_t not_reached = 0, survived = 0;  // and can be killed
  int64_t equal_objects = 0;  // equivalent: compilers make the same of them
  int64_t argued = 0;         // equivalent, as a second person has read

  int64_t killed() const { return failed + crashed + timed_out; }
  double rate() const;  // of `total`; 0 if there are none
  // Of the rate, 95 % (Clopper-Pearson).
  golden::Interval interval() const;
};

class SampledReport {
 public:
  // Throws DataError for an argument that does not hold: for a fault that was
  // killed, or is not in the list of its seed, and for more than may be argued.
  SampledReport(const SampledList& list,
                const std::map<std::string, Equivalent>& equivalents);

  const SampledScore& score() const { return score_; }
  // By package, and of all; what was not drawn; every survivor with its text.
  std::string Text() const;
  // 0: 95 % are killed, and the interval begins at 90 % or more; 4: too few to
  // say, or not complete; 1: fewer.
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
