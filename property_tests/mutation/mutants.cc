// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/mutants.h"

#include "property_tests/mutation/fault_table.h"

namespace softmoe::mutation {

const std::vector<Mutant>& AllMutants() {
  static const std::vector<Mutant> mutants = [] {
    std::vector<Mutant> result;
    for (const Fault& fault : AllFaults()) result.push_back(fault.mutant);
    return result;
  }();
  return mutants;
}

}  // namespace softmoe::mutation
