// SPDX-License-Identifier: Apache-2.0
//
// softmax_formula.h - softmax.h over any scalar (scalar.h).
#ifndef SOFTMOE_REFERENCE_SOFTMAX_FORMULA_H_
#define SOFTMOE_REFERENCE_SOFTMAX_FORMULA_H_

#include "reference/matrix.h"
#include "reference/scalar.h"

namespace softmoe::reference::formula {

// e^{r_i - max r}, and their sum.
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

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_SOFTMAX_FORMULA_H_
