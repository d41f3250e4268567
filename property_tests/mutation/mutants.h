// SPDX-License-Identifier: Apache-2.0
//
// mutants.h - the planted faults of faults/*.toml: each makes one place of the
// sources wrong, and names the tests that must notice.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_MUTANTS_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_MUTANTS_H_

#include <string>
#include <vector>

namespace softmoe::mutation {

struct Mutant {
  std::string id;     // "AREA.what_is_wrong"
  std::string suite;  // the suite that must kill it (suites.h)
  std::string fault;  // what is wrong, in a sentence
  // Why no test can distinguish it from the original; "" for most.
  std::string equivalent_because = "";
  // The id of another mutant with the same kind of change in the same function,
  // so that the two count once; "" for most.
  std::string counts_with = "";

  std::string area() const { return id.substr(0, id.find('.')); }
};

// Every planted fault, by area in alphabetical order. The two in area "canary"
// are not counted as faults: one is equivalent and must survive, the other is
// gross and must die; otherwise the measurement is void.
const std::vector<Mutant>& AllMutants();

inline constexpr char kCanaryArea[] = "canary";
inline constexpr char kEquivalentCanary[] = "canary.equivalent";
inline constexpr char kGrossCanary[] = "canary.gross";

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_MUTANTS_H_
