// SPDX-License-Identifier: Apache-2.0
//
// adamw_body.h - one AdamW update, for any Real: a float, a double, a vector.
#ifndef SOFTMOE_KERNELS_ADAMW_BODY_H_
#define SOFTMOE_KERNELS_ADAMW_BODY_H_

#include "kernels/simt/group.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// The constants of a step, see AdamWArgs (adamw.h).
template <typename Real>
struct AdamWConstants {
  Real learning_rate, beta1, beta2, epsilon, weight_decay, bias1, bias2;
  Real gradient_scale;
};

template <typename Real>
SOFTMOE_INLINE void AdamWUpdate(const AdamWConstants<Real>& c,
                                Real raw_gradient, Real& parameter,
                                Real& first_moment, Real& second_moment) {
  const Real gradient = c.gradient_scale * raw_gradient;
  first_moment = Fma(c.beta1, first_moment, (Real(1) - c.beta1) * gradient);
  second_moment =
      Fma(c.beta2, second_moment, (Real(1) - c.beta2) * gradient * gradient);
  const Real step =
      first_moment * c.bias1 / (Sqrt(second_moment * c.bias2) + c.epsilon);
  parameter =
      Fma(-c.learning_rate, Fma(c.weight_decay, parameter, step), parameter);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ADAMW_BODY_H_
