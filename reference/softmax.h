// SPDX-License-Identifier: Apache-2.0
//
// softmax.h - softmax and log-sum-exp of one row of scores.
//
//   softmax(r)_i = e^{r_i - max r} / sum_j e^{r_j - max r}
//   LogSumExp(r) = max r + ln sum_j e^{r_j - max r}
#ifndef SOFTMOE_REFERENCE_SOFTMAX_H_
#define SOFTMOE_REFERENCE_SOFTMAX_H_

#include "reference/matrix.h"

namespace softmoe::reference {

// Returns softmax(scores) [n], positive, sum 1; scores finite, n >= 1.
Vector Softmax(const Vector& scores);

// Returns the gradient with respect to the scores:
// s_i (v_i - sum_j s_j v_j) for s = softmax and v = d_softmax.
Vector SoftmaxVjp(const Vector& softmax, const Vector& d_softmax);

// Returns ln sum_i e^{scores_i}; its gradient is Softmax(scores).
double LogSumExp(const Vector& scores);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_SOFTMAX_H_
