// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/errors.h"
#include "kernels/router.h"
#include "kernels/router_backward_body.h"
#include "kernels/router_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using kernels::BalanceBasis;
using kernels::RouterMode;
using kernels::RouterShape;
using Doubles = std::vector<double>;

// Forward and backward pass of one batch on the kernels, which compute LapSum,
// the routers and the load balance together. Hides their slots. Cotangents are
// dense; the kernel reads only those of the selected experts.
struct RouterRun {
  const RouterShape& shape;
  std::vector<float> scores;
  std::vector<float> d_gates;        // [rows, experts]
  std::vector<float> d_probability;  // [experts], or empty
  float z_scale = 0;

  // Filled by Execute.
  std::vector<float> soft_weights{}, gates{}, d_scores{};
  std::vector<int32_t> selected{}, num_active{};
  std::vector<double> probability_sums{};
  std::vector<int64_t> balance_counts{}, active_counts{};
  double z_sum = 0, d_mean_active = 0;

  int64_t rows() const { return shape.num_tokens; }
  int64_t experts() const { return shape.num_experts; }
  int64_t slots() const { return rows() * shape.max_active; }

  void Execute(const RowKernels& run) {
    const int64_t n = rows(), e = experts();
    Guarded<float> p("soft_weights", n * e), root("root", 2 * n);
    Guarded<float> gate("gates", slots());
    Guarded<int32_t> count("num_active", n), choice("selected", slots());
    Guarded<double> sums("probability_sums", e), z("z_sum", 1);
    Guarded<int64_t> balance("balance_counts", e), active("active_counts", e);
    Guarded<int64_t> bad("bad_score", 1);
    Guarded<double> scratch("scratch", kernels::RouterScratch(n, e));
    run.router_forward({.shape = shape,
                        .scores = scores.data(),
                        .soft_weights = p.data(),
                        .root = root.data(),
                        .num_active = count.data(),
                        .selected = choice.data(),
                        .gates = gate.data(),
                        .probability_sums = sums.data(),
                        .balance_counts = balance.data(),
                        .active_counts = active.data(),
                        .z_sum = z.data(),
                        .bad_score = bad.data(),
                        .scratch = scratch.data()});
    if (bad.Take()[0] != -1) {
      throw NumericsError(
          fmt::format("bad_score is {} for finite scores", bad.Take()[0]));
    }
    soft_weights = p.Take();
    gates = gate.Take();
    num_active = count.Take();
    selected = choice.Take();
    probability_sums = sums.Take();
    balance_counts = balance.Take();
    active_counts = active.Take();
    z_sum = z.Take()[0];
    CheckSelection();

    const std::vector<float> per_slot = DGatesPerSlot();
    Guarded<float> d_score("d_scores", n * e);
    Guarded<double> d_k("d_mean_active", 1);
    run.router_backward({.shape = shape,
                         .scores = scores.data(),
                         .soft_weights = p.data(),
                         .root = root.data(),
                         .selected = choice.data(),
                         .d_gates = per_slot.data(),
                         .d_probability = d_probability.empty()
                                              ? nullptr
                                              : d_probability.data(),
                         .z_scale = z_scale,
                         .d_scores = d_score.data(),
                         .d_mean_active = d_k.data(),
                         .scratch = scratch.data()});
    d_scores = d_score.Take();
    d_mean_active = d_k.Take()[0];
    root.Take();
    scratch.Take();
  }

  // Converts values per slot to [rows, experts], 0 elsewhere.
  std::vector<double> Dense(const std::vector<float>& per_slot) const {
    std::vector<double> dense(rows() * experts());
    for (int64_t i = 0; i < slots(); ++i) {
      if (selected[i] >= 0) {
        dense[i / shape.max_active * experts() + selected[i]] = per_slot[i];
      }
    }
    return dense;
  }

 private:
  // Checks that the slots hold as many experts as counted, for each token and
  // for each expert, in ascending order and then -1; and that the load balance
  // of soft weights counts the same.
  void CheckSelection() const {
    std::vector<int64_t> tokens(experts());
    for (int64_t t = 0; t < rows(); ++t) {
      int32_t last = -1;
      for (int64_t i = 0; i < shape.max_active; ++i) {
        const int32_t expert = selected[t * shape.max_active + i];
        const bool used = i < num_active[t];
        if (used ? expert <= last || expert >= experts() : expert != -1) {
          throw NumericsError(fmt::format(
              "selected[{}, {}] = {} with {} active experts, the slot before "
              "holds {}",
              t, i, expert, num_active[t], last));
        }
        if (!used) continue;
        last = expert;
        ++tokens[expert];
      }
    }
    for (int64_t e = 0; e < experts(); ++e) {
      if (active_counts[e] == tokens[e]) continue;
      throw NumericsError(
          fmt::format("active_counts[{}] is {}, but {} tokens selected it", e,
                      active_counts[e], tokens[e]));
    }
    if (shape.mode == RouterMode::kSoft &&
        shape.balance == BalanceBasis::kSoftWeights &&
        balance_counts != active_counts) {
      throw NumericsError("balance_counts are not active_counts");
    }
  }

  std::vector<float> DGatesPerSlot() const {
    // The slots past the end hold NaN: they must not be read.
    std::vector<float> per_slot(slots(), NAN);
    for (int64_t i = 0; i < slots(); ++i) {
      if (selected[i] >= 0) {
        per_slot[i] = d_gates[i / shape.max_active * experts() + selected[i]];
      }
    }
    return per_slot;
  }
};

using DoubleRouterConstants = body::RouterConstants<double>;
using DoubleGradientConstants = body::RouterGradientConstants<double>;

DoubleRouterConstants RouterConstantsOf(const Case& c, const TensorMap& inputs,
                                        int64_t max_active) {
  DoubleRouterConstants constants = {};
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

DoubleGradientConstants GradientConstantsOf(const DoubleRouterConstants& c) {
  DoubleGradientConstants constants = {};
  constants.num_experts = c.num_experts;
  constants.inverse_temperature = c.inverse_temperature;
  return constants;
}

// The forward pass of the bodies at double over one row.
struct DoubleRouterRow {
  std::vector<double> weights, softmax, top;
  std::vector<int32_t> active, balance;
  double anchor = 0, offset = 0, log_sum_exp = 0;

  DoubleRouterRow(const DoubleRouterConstants& c, const double* scores,
                  bool sparse, bool softmax_too)
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
};

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
      // The experts that softmax counts do not depend on the cap.
      .max_active = basis == "softmax" ? 1 : c.Size("count_top"),
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
  const bool own_softmax = !soft_basis && !sparse;
  const double mean_active = ScalarOf(inputs, "mean_active");
  const Tensor& scores = At(inputs, "scores");
  auto constants = RouterConstantsOf(c, inputs, c.Size("count_top"));
  constants.balance_top = own_softmax ? constants.max_active : 0;
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
    const DoubleRouterRow row(constants, r, sparse, own_softmax);
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
