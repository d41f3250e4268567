// SPDX-License-Identifier: Apache-2.0
//
// score.h - faults by what became of them, and what that says about the tests.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_H_

#include <cstdint>
#include <map>
#include <string>

#include "golden/document/decimal.h"
#include "property_tests/mutation/fault.h"

namespace softmoe::mutation {

struct Score {
  int64_t total = 0;   // that can be killed: without the equivalent ones
  int64_t killed = 0;  // of these
  std::map<Fate, int64_t> fates;  // of these
  int64_t equal_objects = 0;      // equivalent: compilers make the same of them
  int64_t argued = 0;             // equivalent, as somebody argues

  void Add(Fate fate, bool is_killed);
  double rate() const;  // of `total`; 0 if there are none
  // Of the rate, 95 % (Clopper-Pearson).
  golden::Interval interval() const;
  // "5 of 7 killed: 71.4 % [29.0, 96.3]", with `where` after "killed".
  std::string Text(const std::string& where = "") const;
};

// A table of the scores of `what`, with a last row for all of them.
std::string ScoreTable(const std::string& what,
                       const std::map<std::string, Score>& scores,
                       const Score& all);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_H_
