// SPDX-License-Identifier: Apache-2.0
//
// sampled_report.h - how good the tests are, as far as a sample says.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_

#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/mutation/sampled/equivalents.h"
#include "property_tests/mutation/sampled/sampled_list.h"
#include "property_tests/mutation/score.h"

namespace softmoe::mutation {

// What the tests must reach on a sample.
inline constexpr double kWantedRate = 0.95;
inline constexpr double kWantedLowerEnd = 0.90;
// Of those that count, at most this part may be argued equivalent.
inline constexpr double kMostArgued = 0.10;

class SampledReport {
 public:
  // Throws DataError for an argument that does not hold: for a fault that was
  // killed, or is not in the list of its seed, and for more than may be argued.
  SampledReport(const SampledList& list,
                const std::map<std::string, Equivalent>& equivalents);

  const Score& score() const { return score_; }
  // By package, and of all; what was not drawn; every survivor with its text.
  std::string Text() const;
  // 0: 95 % are killed, and the interval begins at 90 % or more; 4: too few to
  // say, or not complete; 1: fewer.
  ExitCode exit_code() const;

 private:
  const SampledList& list_;
  std::map<std::string, Equivalent> equivalents_;
  Score score_;
  std::map<std::string, Score> packages_, changes_;
  std::vector<const MeasuredFault*> alive_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_
