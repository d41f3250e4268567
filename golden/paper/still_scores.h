// SPDX-License-Identifier: Apache-2.0
//
// still_scores.h - how many experts a soft router activates if its scores keep
// their initial distribution: E independent normal numbers for each token.
//
// Computed by quadrature, without random draws. With the cutoff c = tau k / E
// and the Laplace distribution function F, expert i is active iff p_i > c, that
// is, iff S(r_i - T F^-1(c)) < k, where S(x) = sum_j F((r_j - x) / T) and the
// term of i itself is c. The m-th largest score r has m - 1 above it and E - m
// below, which, given r, are independent truncated normals. So it is active iff
// the sum of G_j = F((r_j - r) / T + F^-1(c)) over the others is below k - c.
// The distribution of this sum comes from its characteristic function, the
// power m - 1 of one factor times the power E - m of another; the probability
// of that, integrated over the density of the m-th largest score, is P(N >= m)
// for the number N of active experts before any fallback, and m up to the cap.
//
// Cut-offs and nodes are chosen such that three times the nodes move results by
// less than 1e-6 if E >= 16 and the scores spread by at most T, by 2e-5 up to 4
// T, and by 1e-3 for E = 8; with three to seven experts results are good to
// 0.05 up to 4 T, and with two to 1e-6. All this holds for k from 1 to E - 1/4.
// Beyond, k - c is so near to an end of what the sum can be that the inversion,
// which smooths, may be off by most of an expert, except with two.
#ifndef SOFTMOE_GOLDEN_PAPER_STILL_SCORES_H_
#define SOFTMOE_GOLDEN_PAPER_STILL_SCORES_H_

#include <cstdint>

namespace softmoe::golden {

// A soft router before it has learnt anything.
struct StillScores {
  int64_t num_experts = 0;  // E, at least 1
  double mean_active = 0;   // k, in (0, E]
  int64_t max_active = 0;   // the cap, in [1, E]
  double tau = 0;           // at least 0; the cutoff is tau k / E
  double temperature = 0;   // T, above 0
  double spread = 0;        // standard deviation of a score, at least 0
  bool fallback_top1 =
      false;  // tokens without an active expert get the largest score's
};

struct StillActivity {
  double active_experts = 0;        // mean, after the cap and the fallback
  double zero_active_fraction = 0;  // share of the tokens, before the fallback
};

// Throws InternalError for numbers outside the ranges above, and if spread / T
// is not finite.
StillActivity ActivityOf(const StillScores& scores);

// The tau at which k experts are active on average before any fallback; the
// largest such tau if the cap is k, which it must not be below. `scores.tau` is
// ignored.
double CalibratedTau(const StillScores& scores);

// The mean over steps m = 0, ..., steps - 1 of the activity at T(m), the cosine
// from `start` to `end` (SPEC.md 4). `scores.temperature` is ignored.
StillActivity MeanActivity(const StillScores& scores, double start, double end,
                           int64_t steps);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_STILL_SCORES_H_
