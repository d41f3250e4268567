// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/operations/router_run.h"

#include <fmt/core.h>

#include <cmath>

#include "core/errors.h"
#include "property_tests/verify/engine/guarded.h"

namespace softmoe::verify {

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

// Checks that the slots hold as many experts as counted, for each token and for
// each expert, ascending, and then -1.
void RouterRun::CheckSelection() const {
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
}

std::vector<float> RouterRun::DGatesPerSlot() const {
  // NaN past the end: it must not be read.
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

}  // namespace softmoe::verify
