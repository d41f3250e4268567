// SPDX-License-Identifier: Apache-2.0
//
// adamw_formula.h - one element's step of adamw.h over any scalar (scalar.h).
#ifndef SOFTMOE_REFERENCE_ADAMW_FORMULA_H_
#define SOFTMOE_REFERENCE_ADAMW_FORMULA_H_

#include <cmath>

namespace softmoe::reference::formula {

// One step, for every element.
template <typename N>
struct AdamWStep {
  N clip, learning_rate, beta1, beta2, epsilon;
  N first_correction, second_correction;  // 1 - beta1^t, 1 - beta2^t

  // g = c * gradient
  // m <- beta1 m + (1 - beta1) g,    v <- beta2 v + (1 - beta2) g^2
  // p <- p - lr ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
  //              + weight_decay p)
  void Update(const N& gradient, const N& weight_decay, N* p, N* m,
              N* v) const {
    using std::sqrt;
    const N g = clip * gradient;
    *m = beta1 * *m + (1 - beta1) * g;
    *v = beta2 * *v + (1 - beta2) * g * g;
    const N step =
        (*m / first_correction) / (sqrt(*v / second_correction) + epsilon);
    *p = *p - learning_rate * (step + weight_decay * *p);
  }
};

// 1 - beta^t
inline double Correction(double beta, double t) {
  return 1 - std::pow(beta, t);
}

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_ADAMW_FORMULA_H_
