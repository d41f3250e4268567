// SPDX-License-Identifier: Apache-2.0
//
// The list of operations: what op= can name.
#include "core/errors.h"
#include "core/text/suggestion.h"
#include "property_tests/verify/lapsum_operation.h"
#include "property_tests/verify/model_operations.h"
#include "property_tests/verify/operation.h"
#include "property_tests/verify/router_operation.h"
#include "property_tests/verify/step_operations.h"

namespace softmoe::verify {

const std::vector<const Operation*>& Operations() {
  static const std::vector<const Operation*> operations = {
      &LapSumOperation(),    &RouterOperation(),  &BalanceSumsOperation(),
      &RmsNormOperation(),   &ExpertsOperation(), &AttentionOperation(),
      &EmbeddingOperation(), &LmHeadOperation(),  &BudgetOperation(),
      &AdamWOperation(),     &GemmOperation(),    &SumOfSquaresOperation(),
  };
  return operations;
}

const Operation& FindOperation(const std::string& name) {
  std::vector<std::string> names;
  for (const Operation* operation : Operations()) {
    if (operation->name() == name) return *operation;
    names.push_back(operation->name());
  }
  throw ConfigError("unknown operation '" + name + "'; " +
                    Suggestion(name, names));
}

}  // namespace softmoe::verify
