// SPDX-License-Identifier: Apache-2.0
//
// The list of operations: what op= can name.
#include "core/errors.h"
#include "core/text/suggestion.h"
#include "property_tests/verify/adamw_operation.h"
#include "property_tests/verify/attention_operation.h"
#include "property_tests/verify/balance_operation.h"
#include "property_tests/verify/budget_operation.h"
#include "property_tests/verify/embedding_operation.h"
#include "property_tests/verify/experts_operation.h"
#include "property_tests/verify/gemm_operation.h"
#include "property_tests/verify/lapsum_operation.h"
#include "property_tests/verify/lm_head_operation.h"
#include "property_tests/verify/operation.h"
#include "property_tests/verify/rmsnorm_operation.h"
#include "property_tests/verify/router_operation.h"
#include "property_tests/verify/sum_of_squares_operation.h"

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
