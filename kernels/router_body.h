// SPDX-License-Identifier: Apache-2.0
//
// router_body.h - the router of one row, written once for every group across
// rows (simt/group.h): LapSum by partial selection (spec.md 1.4 D), softmax,
// truncation and cap.
//
// Notation, for one row: scores r_1..r_n sorted s_1 >= s_2 >= ..., k =
// mean_active, T = temperature, F(u) = e^u/2 for u <= 0 and 1 - e^-u/2 above.
// LapSum seeks x with sum_i F((r_i - x)/T) = k, kept as x = anchor + T*offset.
// If j scores are >= x (j is the segment), with
//     a_j = sum_{i<=j} e^{-(s_i - s_j)/T},  c_j = sum_{i>j} e^{(s_i - s_j)/T}
// then e^{(x - s_j)/T} = (d + sqrt(d^2 + a_j c_j)) / a_j,  d = j - k.  The
// segment is at most ceil(2k) - 1, so `top` >= ceil(2k) largest scores decide
// and the rest enters as one sum. At double the same text is within rounding of
// the reference.
#ifndef SOFTMOE_KERNELS_ROUTER_BODY_H_
#define SOFTMOE_KERNELS_ROUTER_BODY_H_

#include "core/mutant.h"
#include "kernels/simt/group.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// What is the same for every row; made by MakeRouterConstants (router_shape.h).
template <typename Scalar>
struct RouterConstants {
  int num_experts;
  int top;          // largest scores to select: max of what needs them
  int max_active;   // cap
  int balance_top;  // experts counted by kScoresSoftmax; 0: not wanted
  Scalar mean_active, inverse_temperature, cutoff;
  bool fallback_top1;
  bool want_log_sum_exp;
};

// Memory that a row works in, in units of the group's Real.
template <typename Group>
struct RouterRow {
  using Real = typename Group::Real;
  const Real* scores;            // [num_experts]
  Real* weights;                 // [num_experts]  p, or softmax(scores)
  Real* softmax;                 // [num_experts]  softmax(scores) beside p;
                                 // null: not wanted
  Real* top;                     // [2 * top]  where kTop = 0
  typename Group::Set* active;   // [ceil(num_experts/32)]  bit e%32: kept
  typename Group::Set* balance;  // like active: the balance_top largest
  Real anchor, offset;           // soft
  Real log_sum_exp;              // if wanted, or sparse
};

// The `count` largest scores, descending; kTop > 0 says count at compile time.
template <int kTop, typename Real>
SOFTMOE_INLINE void SelectLargest(const Real* scores, int num_experts,
                                  int count, Real* top) {
  const int m = kTop > 0 ? kTop : count;
  SOFTMOE_UNROLL
  for (int i = 0; i < m; ++i) top[i] = Real(-__builtin_inff());
  for (int e = 0; e < num_experts; ++e) {
    Real sinking = scores[e];
    SOFTMOE_UNROLL
    for (int i = 0; i < m; ++i) {
      const Real larger = Max(top[i], sinking);
      sinking = Min(top[i], sinking);
      top[i] = larger;
    }
  }
}

// Sum over the experts of body(e), in four chains: shorter waits and smaller
// rounding errors than one.
template <typename Real, typename Body>
SOFTMOE_INLINE Real SumOverExperts(int num_experts, const Body& body) {
  Real a(0), b(0), c(0), d(0);
  int e = 0;
  for (; e + 4 <= num_experts; e += 4) {
    a = a + body(e);
    b = b + body(e + 1);
    c = c + body(e + 2);
    d = d + body(e + 3);
  }
  if (e < num_experts) a = a + body(e);
  if (e + 1 < num_experts) b = b + body(e + 1);
  if (e + 2 < num_experts) c = c + body(e + 2);
  return (a + b) + (c + d);
}

// softmax(scores) into `softmax`; returns logsumexp(scores). largest = s_1.
template <typename Real>
SOFTMOE_INLINE Real Softmax(const Real* scores, int num_experts, Real largest,
                            Real* softmax) {
  const Real sum = SumOverExperts<Real>(num_experts, [&](int e) {
    return softmax[e] =
               Exp(scores[e] - SOFTMOE_MUTANT("numerics.softmax_unshifted",
                                              largest, Real(0)));
  });
  const Real inverse =
      Real(1) / SOFTMOE_MUTANT("numerics.softmax_denominator_epsilon", sum,
                               sum + Real(1e-7f));
  for (int e = 0; e < num_experts; ++e) softmax[e] = softmax[e] * inverse;
  return largest + Log(sum);
}

template <typename Real>
SOFTMOE_INLINE Real LogSumExp(const Real* scores, int num_experts,
                              Real largest) {
  return largest + Log(SumOverExperts<Real>(num_experts, [&](int e) {
           return Exp(scores[e] - largest);
         }));
}

// The root of the LapSum equation, as anchor + T*offset. top[i] = s_{i+1} for
// i < c.top; `tails` is room for as many Reals.
template <int kTop, typename Real, typename Scalar>
SOFTMOE_INLINE void SolveLapSum(const RouterConstants<Scalar>& c,
                                const Real* scores, const Real* top,
                                Real* tails, Real* anchor, Real* offset) {
  const int m = kTop > 0 ? kTop : c.top;
  const int n = c.num_experts;
  const Real inverse_temperature(c.inverse_temperature);
  const Real lowest = top[m - 1];

  // tails[i] = c_{i+1}. The last one sums the n - m scores outside the
  // selection: those below s_m one by one, the others equal s_m and add 1.
  Real below(0);
  const Real sum = SumOverExperts<Real>(n, [&](int e) {
    const auto is_below = scores[e] < lowest;
    below = below + Select(is_below, Real(1), Real(0));
    return Select(is_below, Exp((scores[e] - lowest) * inverse_temperature),
                  Real(0));
  });
  tails[m - 1] =
      SOFTMOE_MUTANT("lapsum.ties_outside_dropped",
                     sum + (Real(static_cast<Scalar>(n - m)) - below), sum);
  SOFTMOE_UNROLL
  for (int i = m - 2; i >= 0; --i) {
    tails[i] = (Real(1) + tails[i + 1]) *
               Exp((top[i + 1] - top[i]) * inverse_temperature);
  }

  // The last node s_j with S(s_j) = j - (a_j - c_j)/2 < k bounds the segment.
  // Start in front of the first node: j = 0, a = c = 0.
  Real j(0), a(0), tail(0), node = top[0], next = top[0];
  Real next_tail = Real(1) + tails[0];
  Real prefix(0);
  SOFTMOE_UNROLL
  for (int i = 0; i < m; ++i) {
    if (i + 1 == m && m < n) break;  // the segment is below ceil(2k) <= m
    if (SOFTMOE_MUTANT("lapsum.solve_stops_early", false, i + 2 >= m)) break;
    if (i > 0) {
      prefix = prefix * Exp((top[i] - top[i - 1]) * inverse_temperature);
    }
    prefix = prefix + Real(1);  // a_{i+1}
    const Real index(static_cast<Scalar>(i + 1));
    const Real at_node = Fma(Real(Scalar(-0.5)), prefix - tails[i], index);
    const auto inside = at_node < Real(c.mean_active);
    j = Select(inside, index, j);
    a = Select(inside, prefix, a);
    tail = Select(inside, tails[i], tail);
    node = Select(inside, top[i], node);
    if (i + 1 < m) {
      next = Select(inside, top[i + 1], next);
      next_tail = Select(inside, Real(1) + tails[i + 1], next_tail);
    } else {
      next_tail = Select(inside, Real(0), next_tail);
    }
  }

  // Both forms of the root are positive sums: one is free of cancellation for
  // d > 0, the other for d < 0; at d = 0 neither needs c, which may underflow.
  // The offset is not clamped to the segment (spec.md 1.2).
  const Real d = j - Real(c.mean_active);
  const Real root = Sqrt(Fma(d, d, a * tail));
  const auto above = d > Real(0);
  const auto equal =
      SOFTMOE_MUTANT("lapsum.plateau_not_recognised", d == Real(0), d != d);
  const Real t = Log(Select(above, d + root, next_tail) /
                     Select(above | equal, a, root - d));
  // A gap too wide for its own arithmetic must not become inf - inf below.
  const Real gap = SOFTMOE_MUTANT(
      "lapsum.wide_gap_guard_removed",
      Min(Real(Scalar(1e30)), (node - next) * inverse_temperature),
      (node - next) * inverse_temperature);
  *offset =
      Select(equal,
             Real(Scalar(0.5)) *
                 SOFTMOE_MUTANT("lapsum.plateau_offset_sign", t - gap, t + gap),
             t);
  *anchor = SOFTMOE_MUTANT("lapsum.anchor_of_the_other_node",
                           Select(above | equal, node, next),
                           Select(above, node, next));
}

// The set with `bit` added where `kept`.
template <typename Set, typename Condition>
SOFTMOE_INLINE Set AddMember(Set set, int bit, Condition kept) {
  return Select(kept, set | Set(static_cast<int32_t>(1u << bit)), set);
}

// Sets bit e%32 of set[e/32] for each e with admit(e, c), where c says whether
// score e is one of the `count` largest (ties: lower e first). top as from
// SelectLargest. (A fixed number of steps over `top` for kTop > 0, or nvcc
// would keep it in memory instead of registers.)
template <int kTop, typename Real, typename Set, typename Admit>
SOFTMOE_INLINE void MarkLargest(const Real* scores, int num_experts, int count,
                                const Real* top, Set* set, const Admit& admit) {
  const int m = kTop > 0 ? kTop : count;
  Real boundary = top[0];
  SOFTMOE_UNROLL
  for (int i = 1; i < m; ++i) boundary = i < count ? top[i] : boundary;
  Real room(0);  // for scores equal to the boundary
  SOFTMOE_UNROLL
  for (int i = 0; i < m; ++i) {
    const Real one(i < count ? 1.0f : 0.0f);
    room = room + Select(top[i] == boundary, one, Real(0));
  }
  for (int word = 0; word * 32 < num_experts; ++word) {
    const int end = num_experts < word * 32 + 32 ? num_experts : word * 32 + 32;
    Set members(0);
    for (int i = word * 32; i < end; ++i) {
      const int e = SOFTMOE_MUTANT("routing.tie_break_reversed", i,
                                   word * 32 + end - 1 - i);
      const auto tie = scores[e] == boundary;
      const auto kept =
          admit(e, (scores[e] > boundary) |
                       SOFTMOE_MUTANT("routing.ties_exceed_the_cap",
                                      tie & (room > Real(0)), tie));
      room = room - Select(tie, Real(1), Real(0));
      members = AddMember(members, e % 32, kept);
    }
    set[word] = members;
  }
}

// Keeps the first of the largest scores where nothing else is kept.
template <typename Group>
SOFTMOE_INLINE void FallBackToTop1(const RouterRow<Group>& row, int num_experts,
                                   typename Group::Real largest) {
  using Set = typename Group::Set;
  Set any(0);
  for (int word = 0; word * 32 < num_experts; ++word) {
    any = any | row.active[word];
  }
  auto missing = any == Set(0);
  if (!Any(missing)) return;
  for (int e = 0; e < num_experts; ++e) {
    const auto kept =
        SOFTMOE_MUTANT("routing.fallback_takes_the_first_expert",
                       missing & (row.scores[e] == largest), missing);
    Set& word = row.active[e / 32];
    word = AddMember(word, e % 32, kept);
    missing = missing & !kept;
  }
}

// F(u), Laplace's distribution function; 0 below -86.99 in float.
template <typename Real>
SOFTMOE_INLINE Real LaplaceCdf(Real u) {
  const Real half = Real(0.5f) * Exp(-Abs(u));
  return Select(SOFTMOE_MUTANT("lapsum.kink_side", u > Real(0), u >= Real(0)),
                Real(1) - half, half);
}

// p, the active set, the balance counts and the root of one row (spec.md 2.2).
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
  MarkLargest<kTop>(
      row.scores, n, c.max_active, top, row.active, [&](int e, auto largest) {
        return largest & SOFTMOE_MUTANT("routing.cutoff_inclusive",
                                        row.weights[e] > Real(c.cutoff),
                                        row.weights[e] >= Real(c.cutoff));
      });
  if (SOFTMOE_MUTANT("routing.fallback_dropped", c.fallback_top1, false)) {
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
  Real local[kTop > 0 ? kTop : 1];
  Real* top = kTop > 0 ? local : row.top;
  SelectLargest<kTop>(row.scores, c.num_experts, c.top, top);
  row.log_sum_exp = Softmax(row.scores, c.num_experts, top[0], row.weights);
  MarkLargest<kTop>(row.scores, c.num_experts, c.max_active, top, row.active,
                    [](int, auto largest) { return largest; });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ROUTER_BODY_H_
