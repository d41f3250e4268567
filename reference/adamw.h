// SPDX-License-Identifier: Apache-2.0
//
// adamw.h - AdamW with clipping by the global norm (reference, double).
//
//   g = c * gradient,   c = min(1, clip_norm / ||gradient||_2)
//   m <- beta1 m + (1 - beta1) g,    v <- beta2 v + (1 - beta2) g^2
//   p <- p - lr ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//                + weight_decay p)                            SPEC.md 4
//
// t = completed updates + 1. Decay is decoupled, and only for tensors of two or
// more dimensions. The norm is that of the whole gradient, auxiliary losses
// included (Megatron-LM and PyTorch clip by norm + 1e-6, which we do not).
#ifndef SOFTMOE_REFERENCE_ADAMW_H_
#define SOFTMOE_REFERENCE_ADAMW_H_

#include <cmath>
#include <cstdint>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "reference/matrix.h"

namespace softmoe::reference {

struct AdamWState {
  Vector first_moment;   // m [layout.total]
  Vector second_moment;  // v [layout.total]
  int64_t completed_updates = 0;
};

// Zero moments, no update completed.
AdamWState InitialAdamWState(const ParameterLayout& layout);

// L2 norm of all of `gradients`, which are finite. Throws NumericsError if the
// sum of their squares overflows.
double GlobalNorm(const Vector& gradients);

// Returns c above, in (0, 1]: 1 for clip_norm = 0 (clipping off) and for a
// gradient of 0.
double ClipFactor(double norm, double clip_norm);

// Updates `parameters` and `state` once; returns the norm before clipping.
//
//   learning_rate  >= 0; with 0 only the moments change
//   gradients      [layout.total]
//   parameters     [layout.total]
// Errors  NumericsError for a gradient that is not finite, naming its tensor,
//         and as GlobalNorm: nothing is changed.
double AdamWUpdate(const TrainingConfig& training,
                   const ParameterLayout& layout, double learning_rate,
                   const Vector& gradients, Vector* parameters,
                   AdamWState* state);

// The step over any scalar (scalar.h).
namespace formula {

// The quantities of one step that all elements share.
template <typename N>
struct AdamWStep {
  N clip, learning_rate, beta1, beta2, epsilon;
  N first_correction, second_correction;  // 1 - beta1^t, 1 - beta2^t

  // The equations at the top, for one element.
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

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_ADAMW_H_
