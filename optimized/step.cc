// SPDX-License-Identifier: Apache-2.0
#include "optimized/step.h"

namespace softmoe::optimized {

double StepStats::MeanActiveExperts() const {
  if (num_tokens == 0 || layers.empty()) return 0;
  int64_t active = 0;
  for (const LayerStats& layer : layers) {
    for (const int64_t tokens : layer.tokens_per_expert) active += tokens;
  }
  return static_cast<double>(active) /
         static_cast<double>(num_tokens * static_cast<int64_t>(layers.size()));
}

void ThrowDiverged(const std::string& what) {
  throw DivergedError(what +
                      ": the run has diverged, and no parameter was changed");
}

}  // namespace softmoe::optimized
