// SPDX-License-Identifier: Apache-2.0
//
// LapSum, the routers and the load balance on the kernels, which compute them
// together: named tensors in, the kernels' slots and shapes inside.
#include <cmath>

#include "core/errors.h"
#include "property_tests/verify/expected.h"
#include "property_tests/verify/guarded.h"
#include "property_tests/verify/row_kernels.h"

namespace softmoe::verify {
namespace {

using kernels::BalanceBasis;
using kernels::RouterMode;
using kernels::RouterShape;

// Forward and backward of one batch. Cotangents are dense; the kernel reads
// those of the experts that it selected.
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

  void Execute(const RowKernels& run);
  // Values per slot as [rows, experts], 0 elsewhere.
  std::vector<double> Dense(const std::vector<float>& per_slot) const;

 private:
  void CheckSelection() const;
  std::vector<float> DGatesPerSlot() const;
};

void RouterRun::Execute(const RowKernels& run) {
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
  run.router_backward(
      {.shape = shape,
       .scores = scores.data(),
       .soft_weights = p.data(),
       .root = root.data(),
       .selected = choice.data(),
       .d_gates = per_slot.data(),
       .d_probability = d_probability.empty() ? nullptr : d_probability.data(),
       .z_scale = z_scale,
       .d_scores = d_score.data(),
       .d_mean_active = d_k.data(),
       .scratch = scratch.data()});
  d_scores = d_score.Take();
  d_mean_active = d_k.Take()[0];
  root.Take();
  scratch.Take();
}

// The slots are consistent: ascending experts, then -1, as many as counted.
void RouterRun::CheckSelection() const {
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
      if (used) last = expert;
    }
  }
}

std::vector<float> RouterRun::DGatesPerSlot() const {
  // NaN behind the end: it must not be read.
  std::vector<float> per_slot(slots(), NAN);
  for (int64_t i = 0; i < slots(); ++i) {
    if (selected[i] >= 0) {
      per_slot[i] = d_gates[i / shape.max_active * experts() + selected[i]];
    }
  }
  return per_slot;
}

std::vector<double> RouterRun::Dense(const std::vector<float>& per_slot) const {
  std::vector<double> dense(rows() * experts());
  for (int64_t i = 0; i < slots(); ++i) {
    if (selected[i] >= 0) {
      dense[i / shape.max_active * experts() + selected[i]] = per_slot[i];
    }
  }
  return dense;
}

Tensor ScalarTensor(double value) {
  return FromVector(Dtype::kF64, {}, std::vector<double>{value});
}

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

RowRunner FindRowRunner(const std::string& op) {
  if (op == "lapsum") return RunLapSum;
  if (op == "router") return RunRouter;
  if (op == "balance_sums") return RunBalanceSums;
  if (op == "rmsnorm") return RunRmsNorm;
  if (op == "adamw") return RunAdamW;
  return nullptr;
}

}  // namespace softmoe::verify
