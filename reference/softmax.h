// SPDX-License-Identifier: Apache-2.0
//
// softmax.h - softmax and log-sum-exp of one row of scores (reference, double).
//
//   softmax(r)_i = e^{r_i - max r} / sum_j e^{r_j - max r}
//   LogSumExp(r) = max r + ln sum_j e^{r_j - max r}     SPEC.md 2.1, 2.5
//
// Rows have n >= 1 scores, all finite.
#ifndef SOFTMOE_REFERENCE_SOFTMAX_H_
#define SOFTMOE_REFERENCE_SOFTMAX_H_

#include <cmath>
#include <cstdint>

#include "reference/matrix.h"
#include "reference/scalar.h"

namespace softmoe::reference {

// Returns softmax(scores) [n], each in [0, 1], sum 1.
Vector Softmax(const Vector& scores);

// Returns the gradient with respect to the scores [n]:
// s_i (v_i - sum_j s_j v_j) for s = softmax and v = d_softmax. It sums to 0.
Vector SoftmaxVjp(const Vector& softmax, const Vector& d_softmax);

// Returns ln sum_i e^{scores_i}; its gradient is Softmax(scores).
double LogSumExp(const Vector& scores);

// The formulas, over any scalar (scalar.h).
namespace formula {

// e^{r_i - max r}, and their sum, which SumOfN adds up.
template <typename N, typename SumOfN>
struct Exponentials {
  N largest;  // max r; no result depends on what is subtracted
  VectorOf<N> terms;
  N total;

  explicit Exponentials(const VectorOf<N>& scores)
      : largest(scores[0]), terms(scores.size()) {
    using std::exp;
    for (const N& score : scores) {
      if (ValueOf(score) > ValueOf(largest)) largest = score;
    }
    largest = Constant(largest);
    SumOfN sum;
    for (int64_t i = 0; i < scores.size(); ++i) {
      terms[i] = exp(scores[i] - largest);
      sum.Add(terms[i]);
    }
    total = sum.Get();
  }
};

// softmax(r)_i = e^{r_i - max r} / sum_j e^{r_j - max r}
template <typename N, typename SumOfN = CompensatedSum<N>>
VectorOf<N> Softmax(const VectorOf<N>& scores) {
  Exponentials<N, SumOfN> exponentials(scores);
  for (N& term : exponentials.terms) term = term / exponentials.total;
  return exponentials.terms;
}

// softmax(r_t) of each token.
template <typename N>
MatrixOf<N> SoftmaxRows(const MatrixOf<N>& scores) {
  MatrixOf<N> rows(scores.rows(), scores.cols());
  for (int64_t t = 0; t < scores.rows(); ++t) {
    rows.row(t) = Softmax<N>(scores.row(t));
  }
  return rows;
}

// s_i (v_i - sum_j s_j v_j)
template <typename N>
VectorOf<N> SoftmaxVjp(const VectorOf<N>& softmax,
                       const VectorOf<N>& d_softmax) {
  CompensatedSum<N> mean;
  for (int64_t i = 0; i < softmax.size(); ++i) {
    mean.Add(softmax[i] * d_softmax[i]);
  }
  VectorOf<N> d_scores(softmax.size());
  for (int64_t i = 0; i < softmax.size(); ++i) {
    d_scores[i] = softmax[i] * (d_softmax[i] - mean.Get());
  }
  return d_scores;
}

// max r + ln sum_j e^{r_j - max r}
template <typename N>
N LogSumExp(const VectorOf<N>& scores) {
  using std::log;
  const Exponentials<N, CompensatedSum<N>> exponentials(scores);
  return exponentials.largest + log(exponentials.total);
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_SOFTMAX_H_
