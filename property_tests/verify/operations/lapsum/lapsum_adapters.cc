// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/operations/double_router.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/router_run.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using kernels::BalanceBasis;
using kernels::RouterMode;
using kernels::RouterShape;

}  // namespace

TensorMap RunLapSum(const Case& c, const TensorMap& inputs,
                    const RowKernels& run) {
  const int64_t n = c.Size("rows"), e = c.Size("num_experts");
  // Without cutoff and cap, the gates are the weights.
  const RouterShape shape = {
      .num_tokens = n,
      .num_experts = e,
      .mode = RouterMode::kSoft,
      .balance = BalanceBasis::kSoftWeights,
      .mean_active = static_cast<float>(ScalarOf(inputs, "mean_active")),
      .temperature = static_cast<float>(ScalarOf(inputs, "temperature")),
      .cutoff = 0,
      .max_active = e,
      .balance_top = 1,
      .fallback_top1 = false};
  RouterRun router{.shape = shape,
                   .scores = ToFloats(At(inputs, "scores")),
                   .d_gates = ToFloats(At(inputs, "d_weights")),
                   .d_probability = {}};
  router.Execute(run);
  return {{"weights", FromVector(Dtype::kF32, {n, e}, router.soft_weights)},
          {"d_scores", FromVector(Dtype::kF32, {n, e}, router.d_scores)},
          {"d_mean_active", ScalarTensor(router.d_mean_active)}};
}

TensorMap RunLapSumAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t rows = c.Size("rows"), n = c.Size("num_experts");
  const Tensor& scores = At(inputs, "scores");
  const Tensor& d_weights = At(inputs, "d_weights");
  const auto constants = RouterConstantsOf(c, inputs, n);
  const auto gradient = GradientConstantsOf(constants);
  Tensor weights(Dtype::kF64, {rows, n}), d_scores = weights;
  double d_mean_active = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const double* r = &scores.values[t * n];
    const DoubleRouterRow row(constants, r, false, false);
    std::ranges::copy(row.weights, &weights.values[t * n]);
    d_mean_active += body::LapSumBackwardRow(
        gradient, r, row.anchor, row.offset, &d_weights.values[t * n],
        &d_scores.values[t * n]);
  }
  return {{"weights", weights},
          {"d_scores", d_scores},
          {"d_mean_active", ScalarTensor(d_mean_active)}};
}

}  // namespace softmoe::verify
