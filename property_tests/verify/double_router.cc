// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/router_backward_body.h"
#include "kernels/router_body.h"
#include "property_tests/verify/double_implementation.h"
#include "property_tests/verify/expected.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Doubles = std::vector<double>;

body::RouterConstants<double> Constants(const Case& c, const TensorMap& inputs,
                                        int64_t max_active) {
  body::RouterConstants<double> constants = {};
  constants.num_experts = static_cast<int>(c.Size("num_experts"));
  constants.max_active = static_cast<int>(max_active);
  constants.mean_active = ScalarOf(inputs, "mean_active");
  constants.inverse_temperature = 1 / ScalarOf(inputs, "temperature");
  constants.top = std::min(
      constants.num_experts,
      std::max({1, constants.max_active,
                static_cast<int>(std::ceil(2 * constants.mean_active))}));
  return constants;
}

// One row, forward.
struct Row {
  Row(const body::RouterConstants<double>& c, const double* scores, bool sparse,
      bool softmax_too)
      : weights(c.num_experts),
        softmax(c.num_experts),
        top(2 * c.top),
        active((c.num_experts + 31) / 32),
        balance(active.size()) {
    body::RouterRow<body::SerialLane<double>> row = {};
    row.scores = scores;
    row.weights = weights.data();
    row.softmax = softmax_too ? softmax.data() : nullptr;
    row.top = top.data();
    row.active = active.data();
    row.balance = balance.data();
    if (sparse) {
      body::SparseRouterForwardRow<0>(c, row);
    } else {
      body::SoftRouterForwardRow<0>(c, row);
    }
    anchor = row.anchor;
    offset = row.offset;
    log_sum_exp = row.log_sum_exp;
  }
  static bool Has(const std::vector<int32_t>& set, int64_t e) {
    return (static_cast<uint32_t>(set[e / 32]) >> (e % 32) & 1) != 0;
  }

  Doubles weights, softmax, top;
  std::vector<int32_t> active, balance;
  double anchor = 0, offset = 0, log_sum_exp = 0;
};

body::RouterGradientConstants<double> GradientConstants(
    const body::RouterConstants<double>& c) {
  body::RouterGradientConstants<double> constants = {};
  constants.num_experts = c.num_experts;
  constants.inverse_temperature = c.inverse_temperature;
  return constants;
}

Tensor ScalarTensor(double value) {
  Tensor scalar(Dtype::kF64, {});
  scalar.values = {value};
  return scalar;
}

}  // namespace

TensorMap RunLapSumAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t rows = c.Size("rows"), n = c.Size("num_experts");
  const Tensor& scores = At(inputs, "scores");
  const Tensor& d_weights = At(inputs, "d_weights");
  const auto constants = Constants(c, inputs, n);
  const auto gradient = GradientConstants(constants);
  Tensor weights(Dtype::kF64, {rows, n}), d_scores = weights;
  double d_mean_active = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const double* r = &scores.values[t * n];
    const Row row(constants, r, false, false);
    std::ranges::copy(row.weights, &weights.values[t * n]);
    d_mean_active += body::LapSumBackwardRow(
        gradient, r, row.anchor, row.offset, &d_weights.values[t * n],
        &d_scores.values[t * n]);
  }
  return {{"weights", weights},
          {"d_scores", d_scores},
          {"d_mean_active", ScalarTensor(d_mean_active)}};
}

TensorMap RunRouterAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t rows = c.Size("rows"), n = c.Size("num_experts");
  const bool sparse = c.Choice("kind") == "sparse";
  const Tensor& scores = At(inputs, "scores");
  const Tensor& d_gates = At(inputs, "d_gates");
  auto constants = Constants(c, inputs, c.Size("max_active"));
  constants.cutoff = ScalarOf(inputs, "cutoff");
  constants.fallback_top1 = c.Choice("fallback") == "top1";
  const auto gradient = GradientConstants(constants);
  Tensor weights(Dtype::kF64, {rows, n}), gates = weights, d_scores = weights;
  Tensor active(Dtype::kI32, {rows, n});
  double d_mean_active = 0;
  for (int64_t t = 0; t < rows; ++t) {
    const double* r = &scores.values[t * n];
    const Row row(constants, r, sparse, false);
    Doubles v(n);
    for (int64_t e = 0; e < n; ++e) {
      weights.values[t * n + e] = row.weights[e];
      if (!Row::Has(row.active, e)) continue;
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

TensorMap RunBalanceSumsAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t rows = c.Size("rows"), n = c.Size("num_experts");
  const bool sparse = c.Choice("basis") == "softmax_sparse";
  const bool soft_basis = c.Choice("basis") == "soft_weights";
  const double mean_active = ScalarOf(inputs, "mean_active");
  const Tensor& scores = At(inputs, "scores");
  auto constants = Constants(c, inputs, c.Size("count_top"));
  constants.balance_top = soft_basis || sparse ? 0 : constants.max_active;
  constants.want_log_sum_exp = true;
  auto gradient = GradientConstants(constants);
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
    const Row row(constants, r, sparse, !soft_basis && !sparse);
    const bool own_softmax = !soft_basis && !sparse;
    for (int64_t e = 0; e < n; ++e) {
      const double basis = own_softmax  ? row.softmax[e]
                           : soft_basis ? row.weights[e] / mean_active
                                        : row.weights[e];
      sums.values[e] += basis;
      counts.values[e] += Row::Has(own_softmax ? row.balance : row.active, e);
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
