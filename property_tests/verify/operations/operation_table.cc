// SPDX-License-Identifier: Apache-2.0
//
// The list of operations: what op= can name.
#include "core/errors.h"
#include "core/text/suggestion.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/operations/adamw/adamw_operation.h"
#include "property_tests/verify/operations/add/add_operation.h"
#include "property_tests/verify/operations/attention/attention_operation.h"
#include "property_tests/verify/operations/balance/balance_operation.h"
#include "property_tests/verify/operations/balance_loss/balance_loss_operation.h"
#include "property_tests/verify/operations/budget/budget_operation.h"
#include "property_tests/verify/operations/cast/cast_operation.h"
#include "property_tests/verify/operations/embedding/embedding_operation.h"
#include "property_tests/verify/operations/experts/experts_operation.h"
#include "property_tests/verify/operations/gemm/gemm_operation.h"
#include "property_tests/verify/operations/jitter/jitter_operation.h"
#include "property_tests/verify/operations/lapsum/lapsum_operation.h"
#include "property_tests/verify/operations/lm_head/lm_head_operation.h"
#include "property_tests/verify/operations/logit_noise/logit_noise_operation.h"
#include "property_tests/verify/operations/rmsnorm/rmsnorm_operation.h"
#include "property_tests/verify/operations/rope/rope_operation.h"
#include "property_tests/verify/operations/route_plan/route_plan_operation.h"
#include "property_tests/verify/operations/router/router_operation.h"
#include "property_tests/verify/operations/routing_counts/routing_counts_operation.h"
#include "property_tests/verify/operations/sum_of_squares/sum_of_squares_operation.h"

namespace softmoe::verify {

const std::vector<const Operation*>& Operations() {
  static const std::vector<const Operation*> operations = {
      &EmbeddingOperation(), &RmsNormOperation(),     &RopeOperation(),
      &AttentionOperation(), &JitterOperation(),      &LogitNoiseOperation(),
      &LapSumOperation(),    &RouterOperation(),      &RoutingCountsOperation(),
      &RoutePlanOperation(), &BalanceSumsOperation(), &BalanceLossOperation(),
      &ExpertsOperation(),   &LmHeadOperation(),      &BudgetOperation(),
      &AdamWOperation(),     &GemmOperation(),        &SumOfSquaresOperation(),
      &AddOperation(),       &CastOperation(),
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
