// SPDX-License-Identifier: Apache-2.0
//
// The list of operations: what --op can name.
#include "property_tests/verify/lapsum_operation.h"
#include "property_tests/verify/operation.h"

namespace softmoe::verify {

const std::vector<const Operation*>& Operations() {
  static const std::vector<const Operation*> operations = {
      &LapSumOperation(),
  };
  return operations;
}

}  // namespace softmoe::verify
