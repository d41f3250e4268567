// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/adapter_table.h"

#include "property_tests/verify/adamw_adapters.h"
#include "property_tests/verify/attention_adapters.h"
#include "property_tests/verify/balance_adapters.h"
#include "property_tests/verify/budget_adapters.h"
#include "property_tests/verify/embedding_adapters.h"
#include "property_tests/verify/experts_adapters.h"
#include "property_tests/verify/gemm_adapters.h"
#include "property_tests/verify/lapsum_adapters.h"
#include "property_tests/verify/lm_head_adapters.h"
#include "property_tests/verify/rmsnorm_adapters.h"
#include "property_tests/verify/router_adapters.h"
#include "property_tests/verify/sum_of_squares_adapters.h"

namespace softmoe::verify {

const Adapters& AdapterTable() {
  static const Adapters adapters = {
      .rows = {{"lapsum", RunLapSum},
               {"router", RunRouter},
               {"balance_sums", RunBalanceSums},
               {"rmsnorm", RunRmsNorm},
               {"adamw", RunAdamW}},
      .cpu = {{"embedding", RunEmbeddingOnCpu},
              {"lm_head", RunLmHeadOnCpu},
              {"attention", RunAttentionOnCpu},
              {"experts", RunExpertsOnCpu},
              {"budget", RunBudgetOnCpu},
              {"adamw", RunAdamWOnCpu},
              {"sum_of_squares", RunSumOfSquaresOnCpu},
              {"gemm", RunGemmOnCpu}},
      .at_double = {{"lapsum", RunLapSumAtDouble},
                    {"router", RunRouterAtDouble},
                    {"balance_sums", RunBalanceSumsAtDouble},
                    {"rmsnorm", RunRmsNormAtDouble},
                    {"embedding", RunEmbeddingAtDouble},
                    {"lm_head", RunLmHeadAtDouble},
                    {"experts", RunExpertsAtDouble}},
  };
  return adapters;
}

}  // namespace softmoe::verify
