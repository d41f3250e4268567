// SPDX-License-Identifier: Apache-2.0
//
// sampled_report.h - how good the tests are, judged by a sample and by the
// arguments that no test can tell certain survivors from the original.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLED_REPORT_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/sampled/sampled_list.h"

namespace softmoe::mutation {

// An entry of equivalent.toml.
struct Equivalent {
  std::string where;  // FILE:LINE:COLUMN
  std::string because;
  // A second person who has read the argument and agrees; without one the
  // argument does not count.
  std::string read_by;
};

// Reads entries by id. Throws ConfigError or DataError, with the place, for an
// invalid file, a repeated id, or an argument of fewer than ten letters.
std::map<std::string, Equivalent> ReadEquivalents(
    const std::filesystem::path& file);

class SampledReport {
 public:
  // Throws DataError for an argument about a fault that was killed or is not in
  // its seed's list, and for more arguments than allowed.
  SampledReport(const SampledList& list,
                const std::map<std::string, Equivalent>& equivalents);

  const Score& score() const { return score_; }
  // Scores by package and in total, what was not drawn, each survivor's text.
  std::string Text() const;
  // 0: 95 % are killed, and the interval starts at 90 % or more; 4: too few
  // faults to say, or the list is incomplete; 1: fewer are killed.
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
