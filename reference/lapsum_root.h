// SPDX-License-Identifier: Apache-2.0
//
// lapsum_root.h - the root of the LapSum equation in closed form (SPEC.md 1.2),
// over any scalar: double is the reference; Dual (dual.h) differentiates every
// operation, independently of the implicit function theorem behind LapSumVjp.
#ifndef SOFTMOE_REFERENCE_LAPSUM_ROOT_H_
#define SOFTMOE_REFERENCE_LAPSUM_ROOT_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/scalar.h"

namespace softmoe::reference {

// The root as anchor + T*offset. When k = j exactly, the root lies near the
// middle of a gap that may be so wide that an offset from s_j cannot resolve
// what lies beyond s_{j+1}; `balanced` then says to use both ends.
template <typename Scalar>
struct LapSumRoot {
  Scalar anchor = 0;
  Scalar offset = 0;
  bool balanced = false;  // d = 0: top j and the rest share sum f half and half
  Scalar upper = 0;       // s_j
  Scalar lower = 0;       // s_{j+1}
  Scalar half_log_ratio = 0;  // ln(b_{j+1}/a_j) / 2
};

// a_j = sum_{i<=j} e^{-(s_i - s_j)/T}, j = 1..n: the scores from s_j up, seen
// from s_j. In [1, j].
template <typename Scalar>
Scalar SumAbove(const std::vector<Scalar>& s, int j, Scalar temperature) {
  using std::exp;
  CompensatedSum<Scalar> sum;
  for (int i = 1; i <= j; ++i) {
    sum.Add(exp(-(s[i - 1] - s[j - 1]) / temperature));
  }
  return sum.Get();
}

// b_j = sum_{i>=j} e^{(s_i - s_j)/T}, j = 1..n: the scores from s_j down.
template <typename Scalar>
Scalar SumBelow(const std::vector<Scalar>& s, int j, Scalar temperature) {
  using std::exp;
  CompensatedSum<Scalar> sum;
  for (int i = j; i <= static_cast<int>(s.size()); ++i) {
    sum.Add(exp((s[i - 1] - s[j - 1]) / temperature));
  }
  return sum.Get();
}

// S(s_j) = j - (a_j - (b_j - 1))/2.
template <typename Scalar>
Scalar NodeValue(const std::vector<Scalar>& s, int j, Scalar temperature) {
  return j - 0.5 * (SumAbove(s, j, temperature) -
                    (SumBelow(s, j, temperature) - 1));
}

// `s`: the finite scores, largest first. For k <= 0 and k >= n x~ is infinite.
template <typename Scalar>
LapSumRoot<Scalar> SolveLapSumRoot(const std::vector<Scalar>& s, Scalar k,
                                   Scalar temperature) {
  using std::exp, std::hypot, std::log, std::sqrt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int n = static_cast<int>(s.size());
  if (k <= 0) return {.anchor = kInfinity};
  if (k >= n) return {.anchor = -kInfinity};

  // x~ is in segment j: x~ <= s_1..s_j, and above the rest. S_j >= j/2, so
  // this looks at no more than ceil(2k) scores.
  int j = 0;
  while (j < n && NodeValue(s, j + 1, temperature) < k) ++j;

  if (j == 0) {
    const Scalar b = SumBelow(s, 1, temperature);
    // For k near the smallest double the quotient overflows, a log does not.
    const Scalar offset = k > 1e-300 ? log(b / (2 * k)) : log(b / 2) - log(k);
    return {.anchor = s[0], .offset = offset};
  }
  if (j == n) {
    const Scalar a = SumAbove(s, n, temperature);
    return {.anchor = s[n - 1], .offset = log(2 * (n - k) / a)};
  }

  // On segment j: a z^2 - 2 d z - h^2/a = 0 for z = e^{(x - s_j)/T}. The two
  // forms of its positive root avoid cancellation. No clamping of the offset
  // to the segment: NOTATION.md#lapsum.
  const Scalar a = SumAbove(s, j, temperature);
  const Scalar b = SumBelow(s, j + 1, temperature);
  const Scalar half_gap = 0.5 * (s[j - 1] - s[j]) / temperature;
  const Scalar h = exp(-half_gap) * sqrt(a * b);
  const Scalar d = j - k;
  if (d > 0) {
    return {.anchor = s[j - 1], .offset = log((d + hypot(d, h)) / a)};
  }
  if (d < 0) {
    return {.anchor = s[j], .offset = log(b / (-d + hypot(d, h)))};
  }
  const Scalar half_log_ratio = 0.5 * log(b / a);
  // asinh(d/h), which is 0; its derivative is not.
  const Scalar tilt = h > 0 ? d / h : Scalar(0);
  return {
      .anchor = s[j - 1],
      // Finite even where the gap is not, so that r - x~ is never inf - inf.
      .offset = -std::min(half_gap, Scalar(0x1p1000)) + half_log_ratio + tilt,
      .balanced = true,
      .upper = s[j - 1],
      .lower = s[j],
      .half_log_ratio = half_log_ratio};
}

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_LAPSUM_ROOT_H_
