// SPDX-License-Identifier: Apache-2.0
//
// invariants.h - what must hold for the runs of any grid, at any scale.
//
// The paper's numbers can be compared only at the paper's scale, but whether
// the method does what its formulas say can be checked at every scale. The
// invariants decide the exit code of `grid run`.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_INVARIANTS_H_
#define SOFTMOE_EXPERIMENTS_REPORT_INVARIANTS_H_

#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

// How far a trained model's loss must be below the unigram distribution's,
// which a model reaches without using the context.
inline constexpr double kBelowUnigram = 0.3;  // nats per token

struct Invariant {
  std::string id;    // "allocation_sum"
  std::string text;  // "sum of k_l = K within rounding"
  bool holds = false;
  std::string detail = {};  // the worst case, or the first that breaks it
};

// The invariants that apply to the requested rows, over all finished runs. An
// invariant without a finished run to check does not hold, since it is
// unconfirmed; nor does one with a result that lacks steps or layers. For a
// recorded run, "every step" means every step in its record.
//
// - rows_finished: every requested run finished.
// - allocation_sum: sum_l k_l = K at every step (SoftMoE; SPEC.md 2.1).
// - allocation_floor: k_l >= 1 at every step (soft routers).
// - cap: no token in training has more active experts than the largest cap of
//   any layer and step; no layer exceeds its own cap on average at any step;
//   and no token in validation exceeds its layer's cap (ruling 5).
// - sparse_exactly_k: Sparse MoE activates k experts for every token, in
//   training and in validation.
// - sparse_active_parameters: among Sparse MoE models of the same sizes, more
//   experts activate strictly more parameters, whatever the corpus and seed.
// - finite_losses: every logged or validation loss and gradient norm is finite.
// - loss_falls: the mean loss of the last tenth of the steps < of the first.
// - below_unigram: held-out loss <= unigram's - kBelowUnigram.
// - counts_add_up: histograms hold every validation token once.
std::vector<Invariant> CheckInvariants(const GridOutcome& outcome);

// One line for each invariant: "PASS  sum of k_l = K within rounding  DETAIL".
std::string DescribeInvariants(const std::vector<Invariant>& invariants);

bool AllHold(const std::vector<Invariant>& invariants);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_INVARIANTS_H_
