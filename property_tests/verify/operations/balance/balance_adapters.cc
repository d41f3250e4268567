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

TensorMap RunBalanceSums(const Case& c, const TensorMap& inputs,
                         const RowKernels& run) {
  const int64_t n = c.Size("rows"), e = c.Size("num_experts");
  const std::string& basis = c.Choice("basis");
  const RouterShape shape = {
      .num_tokens = n,
      .num_experts = e,
      .mode =
          basis == "softmax_sparse" ? RouterMode::kSparse : RouterMode::kSoft,
      .balance = basis == "soft_weights" ? BalanceBasis::kSoftWeights
                                         : BalanceBasis::kScoresSoftmax,
      .mean_active = static_cast<float>(ScalarOf(inputs, "mean_active")),
      .temperature = static_cast<float>(ScalarOf(inputs, "temperature")),
      .cutoff = 0,
      .max_active = c.Size("count_top"),
      .balance_top = c.Size("count_top"),
      .fallback_top1 = false};
  RouterRun router{.shape = shape,
                   .scores = ToFloats(At(inputs, "scores")),
                   .d_gates = std::vector<float>(n * e, 0.0f),
                   .d_probability = ToFloats(At(inputs, "d_basis_sums")),
                   .z_scale = static_cast<float>(ScalarOf(inputs, "d_z_sum"))};
  router.Execute(run);
  return {{"basis_sums", FromVector(Dtype::kF64, {e}, router.probability_sums)},
          {"z_sum", ScalarTensor(router.z_sum)},
          {"counts", FromVector(Dtype::kI32, {e}, router.balance_counts)},
          {"d_scores", FromVector(Dtype::kF32, {n, e}, router.d_scores)},
          {"d_mean_active", ScalarTensor(router.d_mean_active)}};
}

TensorMap RunBalanceSumsAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t rows = c.Size("rows"), n = c.Size("num_experts");
  const bool sparse = c.Choice("basis") == "softmax_sparse";
  const bool soft_basis = c.Choice("basis") == "soft_weights";
  const double mean_active = ScalarOf(inputs, "mean_active");
  const Tensor& scores = At(inputs, "scores");
  auto constants = RouterConstantsOf(c, inputs, c.Size("count_top"));
  constants.balance_top = soft_basis || sparse ? 0 : constants.max_active;
  constants.want_log_sum_exp = true;
  auto gradient = GradientConstantsOf(constants);
  gradient.z_scale = ScalarOf(inputs, "d_z_sum");
  Doubles d_basis = At(inputs, "d_basis_sums").values;
  if (soft_basis) {
    for (double& x : d_basis) x /= mean_active;
    gradient.d_soft_weight = d_basis.data();
  } else {
    gradient.d_softmax = d_basis.data();
  }
  Tensor sums(Dtype::kF64, {n}), counts(Dtype::kI32, {n});
  Tensor d_scores(Dtype::kF64, {rows, n});
  double z_sum = 0;
  const Doubles no_gates(n);
  Doubles softmax(n);
  for (int64_t t = 0; t < rows; ++t) {
    const double* r = &scores.values[t * n];
    const DoubleRouterRow row(constants, r, sparse, !soft_basis && !sparse);
    const bool own_softmax = !soft_basis && !sparse;
    for (int64_t e = 0; e < n; ++e) {
      const double basis = own_softmax  ? row.softmax[e]
                           : soft_basis ? row.weights[e] / mean_active
                                        : row.weights[e];
      sums.values[e] += basis;
      counts.values[e] +=
          DoubleRouterRow::Has(own_softmax ? row.balance : row.active, e);
    }
    z_sum += row.log_sum_exp * row.log_sum_exp;
    double* d = &d_scores.values[t * n];
    if (sparse) {
      body::SparseBackwardRow(gradient, r, row.weights.data(), no_gates.data(),
                              d);
      continue;
    }
    body::LapSumBackwardRow(gradient, r, row.anchor, row.offset,
                            no_gates.data(), d);
    body::AddSoftmaxLossGradients(gradient, r, softmax.data(), d);
  }
  return {{"basis_sums", sums},
          {"z_sum", ScalarTensor(z_sum)},
          {"counts", counts},
          {"d_scores", d_scores},
          {"d_mean_active", ScalarTensor(0)}};
}

}  // namespace softmoe::verify
