// SPDX-License-Identifier: Apache-2.0
//
// diverged.h - what every number that is not finite ends a run with.
#ifndef SOFTMOE_OPTIMIZED_DIVERGED_H_
#define SOFTMOE_OPTIMIZED_DIVERGED_H_

#include <string>

#include "core/errors.h"

namespace softmoe::optimized {

// Throws NumericsError: `what` with its place, and the remedy. A checkpoint is
// none: it belongs to its configuration, and would diverge again.
[[noreturn]] inline void ThrowDiverged(const std::string& what) {
  throw NumericsError(
      what +
      ": the run has diverged, and no parameter was changed; start it again "
      "with a lower training.learning_rate, a longer training.warmup_fraction "
      "or a lower training.clip_norm");
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_DIVERGED_H_
