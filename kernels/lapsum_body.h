// SPDX-License-Identifier: Apache-2.0
//
// lapsum_body.h - LapSum of one row by partial selection (SPEC.md 1.4 D),
// written once for every group across rows (simt/group.h).
//
// Notation, for one row: scores r_1..r_n, sorted s_1 >= s_2 >= ...;
// k = mean_active, T = temperature, F(u) = e^u/2 for u <= 0 and 1 - e^-u/2
// above. LapSum seeks x with sum_i F((r_i - x)/T) = k, kept as
// x = anchor + T*offset.
// If j scores are >= x (j is the segment), with
//     a_j = sum_{i<=j} e^{-(s_i - s_j)/T},  c_j = sum_{i>j} e^{(s_i - s_j)/T}
// then e^{(x - s_j)/T} = (d + sqrt(d^2 + a_j c_j)) / a_j,  d = j - k.  (c_j is
// b_{j+1} e^{-Delta_j} of SPEC.md 1.2, so a_j c_j is its h_j^2.) The segment is
// at most ceil(2k) - 1, so `top` >= ceil(2k) largest scores decide and the rest
// enters as one sum. At double the same source agrees with the reference to
// within rounding.
#ifndef SOFTMOE_KERNELS_LAPSUM_BODY_H_
#define SOFTMOE_KERNELS_LAPSUM_BODY_H_

#include "kernels/router_row.h"
#include "kernels/softmax_body.h"
#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// The `count` largest scores, descending; kTop > 0 is `count` at compile time.
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
  tails[m - 1] = sum + (Real(static_cast<Scalar>(n - m)) - below);
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
  // The offset is not clamped to the segment (SPEC.md 1.2).
  const Real d = j - Real(c.mean_active);
  const Real root = Sqrt(Fma(d, d, a * tail));
  const auto above = d > Real(0);
  const auto equal = d == Real(0);
  const Real t = Log(Select(above, d + root, next_tail) /
                     Select(above | equal, a, root - d));
  // A gap too wide for its own arithmetic must not become inf - inf below.
  const Real gap = Min(Real(Scalar(1e30)), (node - next) * inverse_temperature);
  *offset = Select(equal, Real(Scalar(0.5)) * (t - gap), t);
  *anchor = Select(above | equal, node, next);
}

// F(u), Laplace's distribution function; 0 below -86.99 in float.
template <typename Real>
SOFTMOE_INLINE Real LaplaceCdf(Real u) {
  const Real half = Real(0.5f) * Exp(-Abs(u));
  return Select(u > Real(0), Real(1) - half, half);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_LAPSUM_BODY_H_
