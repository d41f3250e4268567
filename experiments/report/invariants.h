// SPDX-License-Identifier: Apache-2.0
//
// invariants.h - what must hold for the runs of any grid, at any scale.
//
// The paper's numbers can be compared only at the paper's scale; that the
// method does what its formulas say can be checked at every scale. The
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
// unconfirmed; nor does one with a result that lacks steps or layers. Every
// step of a recorded run means every one that its record has.
//
// - rows_finished: every requested run finished.
// - allocation_sum: sum_l k_l = K at every step (SoftMoE; SPEC.md 2.1).
// - allocation_floor: k_l >= 1 at every step (soft routers).
// - cap: no token in training has more active experts than the largest cap of
//   any layer and step, no layer at a step more on average than its own cap,
//   and no token in validation more than its layer's (ruling 5).
// - sparse_exactly_k: Sparse MoE activates k experts for every token, in
//   training and in validation.
// - sparse_active_parameters: more experts in Sparse MoE activate strictly more
//   parameters of a model of the same sizes, whatever the corpus and seed.
// - finite_losses: every loss and gradient norm of the log and of validation.
// - loss_falls: mean loss of the last tenth of the steps < of the first tenth.
// - below_unigram: held-out loss <= unigram's - kBelowUnigram.
// - counts_add_up: histograms hold every validation token once.
std::vector<Invariant> CheckInvariants(const GridOutcome& outcome);

// One line each: "PASS  sum of k_l = K within rounding  DETAIL".
std::string DescribeInvariants(const std::vector<Invariant>& invariants);

bool AllHold(const std::vector<Invariant>& invariants);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_INVARIANTS_H_
