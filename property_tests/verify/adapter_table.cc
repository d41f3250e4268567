// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/adapter_table.h"

#include "property_tests/verify/operations/adamw/adamw_adapters.h"
#include "property_tests/verify/operations/add/add_adapters.h"
#include "property_tests/verify/operations/attention/attention_adapters.h"
#include "property_tests/verify/operations/balance/balance_adapters.h"
#include "property_tests/verify/operations/balance_loss/balance_loss_adapters.h"
#include "property_tests/verify/operations/budget/budget_adapters.h"
#include "property_tests/verify/operations/cast/cast_adapters.h"
#include "property_tests/verify/operations/embedding/embedding_adapters.h"
#include "property_tests/verify/operations/experts/experts_adapters.h"
#include "property_tests/verify/operations/gemm/gemm_adapters.h"
#include "property_tests/verify/operations/jitter/jitter_adapters.h"
#include "property_tests/verify/operations/lapsum/lapsum_adapters.h"
#include "property_tests/verify/operations/lm_head/lm_head_adapters.h"
#include "property_tests/verify/operations/logit_noise/logit_noise_adapters.h"
#include "property_tests/verify/operations/rmsnorm/rmsnorm_adapters.h"
#include "property_tests/verify/operations/rope/rope_adapters.h"
#include "property_tests/verify/operations/route_plan/route_plan_adapters.h"
#include "property_tests/verify/operations/router/router_adapters.h"
#include "property_tests/verify/operations/routing_counts/routing_counts_adapters.h"
#include "property_tests/verify/operations/sum_of_squares/sum_of_squares_adapters.h"

namespace softmoe::verify {

const Adapters& AdapterTable() {
  static const Adapters adapters = {
      .rows = {{"lapsum", RunLapSum},
               {"router", RunRouter},
               {"balance_sums", RunBalanceSums},
               {"rmsnorm", RunRmsNorm<float>},
               {"adamw", RunAdamW},
               {"sum_of_squares", RunSumOfSquares},
               {"embedding", RunEmbedding<float>},
               {"rope", RunRope<float>},
               {"jitter", RunJitter<float>},
               {"logit_noise", RunLogitNoise},
               {"routing_counts", RunRoutingCounts},
               {"route_plan", RunRoutePlan},
               {"balance_loss", RunBalanceLoss},
               {"budget", RunBudget},
               {"add", RunAdd<float>},
               {"lm_head", RunLmHead<float>},
               {"attention", RunAttention<float>},
               {"experts", RunExperts<float>},
               {"gemm", RunGemm<float>}},
      .bf16 = {{"rmsnorm", RunRmsNorm<kernels::Bf16>},
               {"embedding", RunEmbedding<kernels::Bf16>},
               {"rope", RunRope<kernels::Bf16>},
               {"jitter", RunJitter<kernels::Bf16>},
               {"add", RunAdd<kernels::Bf16>},
               {"cast", RunCast},
               {"lm_head", RunLmHead<kernels::Bf16>},
               {"attention", RunAttention<kernels::Bf16>},
               {"experts", RunExperts<kernels::Bf16>},
               {"gemm", RunGemm<kernels::Bf16>}},
      .cpu = {{"adamw", RunAdamWOnCpu}},
      .at_double = {{"lapsum", RunLapSumAtDouble},
                    {"router", RunRouterAtDouble},
                    {"balance_sums", RunBalanceSumsAtDouble},
                    {"rmsnorm", RunRmsNormAtDouble},
                    {"embedding", RunEmbeddingAtDouble},
                    {"rope", RunRopeAtDouble},
                    {"lm_head", RunLmHeadAtDouble},
                    {"experts", RunExpertsAtDouble}},
  };
  return adapters;
}

}  // namespace softmoe::verify
