// SPDX-License-Identifier: Apache-2.0
//
// mutants.h - the table of planted faults (core/mutant.h): each is one line of
// the sources that can be made wrong, and names the tests that must notice.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_MUTANTS_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_MUTANTS_H_

#include <string>
#include <vector>

namespace softmoe::mutation {

struct Mutant {
  std::string id;     // "AREA.what_is_wrong", as in the sources
  std::string suite;  // that must kill it (suites.h)
  std::string fault;  // in a sentence
  // Why no test can tell it from the original; "" for all but a few.
  std::string equivalent_because = "";

  std::string area() const { return id.substr(0, id.find('.')); }
};

// Every mutant of the sources, by area. The two of the area "canary" are no
// faults: one is equivalent and must survive, one is gross and must die, or the
// whole measurement is void.
const std::vector<Mutant>& AllMutants();

inline constexpr char kCanaryArea[] = "canary";
inline constexpr char kEquivalentCanary[] = "canary.equivalent";
inline constexpr char kGrossCanary[] = "canary.gross";

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_MUTANTS_H_
