// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/operations/double_router.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/router_run.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Doubles = std::vector<double>;
using kernels::BalanceBasis;
using kernels::RouterMode;
using kernels::RouterShape;

}  // namespace

TensorMap RunRouter(const Case& c, const TensorMap& inputs,
                    const RowKernels& run) {
  const int64_t n = c.Size("rows"), e = c.Size("num_experts");
  const RouterShape shape = {
      .num_tokens = n,
      .num_experts = e,
      .mode = c.Choice("kind") == "sparse" ? RouterMode::kSparse
                                           : RouterMode::kSoft,
      .balance = BalanceBasis::kSoftWeights,
      .mean_active = static_cast<float>(ScalarOf(inputs, "mean_active")),
      .temperature = static_cast<float>(ScalarOf(inputs, "temperature")),
      .cutoff = static_cast<float>(ScalarOf(inputs, "cutoff")),
      .max_active = c.Size("max_active"),
      .balance_top = 1,
      .fallback_top1 = c.Choice("fallback") == "top1"};
  RouterRun router{.shape = shape,
                   .scores = ToFloats(At(inputs, "scores")),
                   .d_gates = ToFloats(At(inputs, "d_gates")),
                   .d_probability = {}};
  router.Execute(run);
  const std::vector<float> ones(router.slots(), 1.0f);
  return {
      {"soft_weights", FromVector(Dtype::kF32, {n, e}, router.soft_weights)},
      {"active", FromVector(Dtype::kI32, {n, e}, router.Dense(ones))},
      {"gates", FromVector(Dtype::kF32, {n, e}, router.Dense(router.gates))},
      {"d_scores", FromVector(Dtype::kF32, {n, e}, router.d_scores)},
      {"d_mean_active", ScalarTensor(router.d_mean_active)}};
}

TensorMap RunRouterAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t rows = c.Size("rows"), n = c.Size("num_experts");
  const bool sparse = c.Choice("kind") == "sparse";
  const Tensor& scores = At(inputs, "scores");
  const Tensor& d_gates = At(inputs, "d_gates");
  auto constants = RouterConstantsOf(c, inputs, c.Size("max_active"));
  constants.cutoff = ScalarOf(inputs, "cutoff");
  constants.fallback_top1 = c.Choice("fallback") == "top1";
  const auto gradient = GradientConstantsOf(constants);
  Tensor weights(Dtype::kF64, {rows, n}), gates = weights, d_scores = weights;
  Tensor active(Dtype::kI32, {rows, n});
  double d_mean_active = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const double* r = &scores.values[t * n];
    const DoubleRouterRow row(constants, r, sparse, false);
    Doubles v(n);
    for (int64_t e = 0; e < n; ++e) {
      weights.values[t * n + e] = row.weights[e];
      if (!DoubleRouterRow::Has(row.active, e)) continue;
      active.values[t * n + e] = 1;
      gates.values[t * n + e] = row.weights[e];
      v[e] = d_gates.values[t * n + e];
    }
    double* d = &d_scores.values[t * n];
    if (sparse) {
      body::SparseBackwardRow(gradient, r, row.weights.data(), v.data(), d);
    } else {
      d_mean_active += body::LapSumBackwardRow(gradient, r, row.anchor,
                                               row.offset, v.data(), d);
    }
  }
  return {{"soft_weights", weights},
          {"active", active},
          {"gates", gates},
          {"d_scores", d_scores},
          {"d_mean_active", ScalarTensor(d_mean_active)}};
}

}  // namespace softmoe::verify
