// SPDX-License-Identifier: Apache-2.0
//
// router_body.h - the routers' forward pass over one row, written once for
// every group across rows (simt/group.h): LapSum or softmax, then cutoff, cap
// and fallback (SPEC.md 2.2).
#ifndef SOFTMOE_KERNELS_ROUTER_BODY_H_
#define SOFTMOE_KERNELS_ROUTER_BODY_H_

#include "kernels/active_set_body.h"
#include "kernels/lapsum_body.h"
#include "kernels/router_row.h"
#include "kernels/softmax_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// p, the active set, the balance counts and the root of one row (SPEC.md 2.2).
template <int kTop, typename Group, typename Scalar>
SOFTMOE_INLINE void SoftRouterForwardRow(const RouterConstants<Scalar>& c,
                                         RouterRow<Group>& row) {
  using Real = typename Group::Real;
  const int n = c.num_experts;
  Real local[kTop > 0 ? 2 * kTop : 1];
  Real* top = kTop > 0 ? local : row.top;
  Real* tails = top + (kTop > 0 ? kTop : c.top);
  SelectLargest<kTop>(row.scores, n, c.top, top);
  SolveLapSum<kTop>(c, row.scores, top, tails, &row.anchor, &row.offset);

  for (int e = 0; e < n; ++e) {
    const Real u = Fma(row.scores[e] - row.anchor, Real(c.inverse_temperature),
                       -row.offset);
    row.weights[e] = LaplaceCdf(u);
  }
  MarkLargest<kTop>(row.scores, n, c.max_active, top, row.active,
                    [&](int e, auto largest) {
                      return largest & (row.weights[e] > Real(c.cutoff));
                    });
  if (c.fallback_top1) {
    FallBackToTop1(row, n, top[0]);
  }

  if (c.balance_top > 0) {
    MarkLargest<kTop>(row.scores, n, c.balance_top, top, row.balance,
                      [](int, auto largest) { return largest; });
  }
  if (row.softmax != nullptr) {
    row.log_sum_exp = Softmax(row.scores, n, top[0], row.softmax);
  } else if (c.want_log_sum_exp) {
    row.log_sum_exp = LogSumExp(row.scores, n, top[0]);
  }
}

// softmax(scores) over all experts and its max_active largest.
template <int kTop, typename Group, typename Scalar>
SOFTMOE_INLINE void SparseRouterForwardRow(const RouterConstants<Scalar>& c,
                                           RouterRow<Group>& row) {
  using Real = typename Group::Real;
  Real local[kTop > 0 ? kTop : 1];  // NOLINT(bugprone-branch-clone): if 1
  Real* top = kTop > 0 ? local : row.top;
  SelectLargest<kTop>(row.scores, c.num_experts, c.top, top);
  row.log_sum_exp = Softmax(row.scores, c.num_experts, top[0], row.weights);
  MarkLargest<kTop>(row.scores, c.num_experts, c.max_active, top, row.active,
                    [](int, auto largest) { return largest; });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ROUTER_BODY_H_
