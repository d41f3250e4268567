// SPDX-License-Identifier: Apache-2.0
//
// diverged.h - the error with which every number that is not finite ends a run.
#ifndef SOFTMOE_OPTIMIZED_DIVERGED_H_
#define SOFTMOE_OPTIMIZED_DIVERGED_H_

#include <string>

#include "core/errors.h"

namespace softmoe::optimized {

// Throws NumericsError: `what` with its place, and the remedy. Resuming from a
// checkpoint is no remedy: it belongs to its configuration, and would diverge
// again.
[[noreturn]] inline void ThrowDiverged(const std::string& what) {
  throw NumericsError(
      what +
      ": the run has diverged, and no parameter was changed; start it again "
      "with a lower training.learning_rate, a longer training.warmup_fraction "
      "or a lower training.clip_norm");
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_DIVERGED_H_
