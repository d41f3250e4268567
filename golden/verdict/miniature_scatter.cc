// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_scatter.h"

namespace softmoe::golden {

void SetError(const std::vector<Term>& terms, const Scatter& scatter,
              const std::vector<int64_t>& seeds, MiniatureCase* result) {
  const RowNoise& noise = scatter.noise;
  if (!noise.pooled.known()) {
    result->problem = "no two rows with two seeds in common: unknown noise";
    return;
  }
  SumError error = ErrorOf(terms, noise);
  if (!seeds.empty()) {
    const SumError own = OwnErrorOf(terms, scatter.values, seeds);
    result->own_error = own.error;
    result->own_freedom = own.freedom;
    if (noise.unequal && scatter.kind == Noise::kPaired) error = own;
  }
  result->seed_error = error.error;
  result->freedom = error.freedom;
  result->own_deviation = error.own;
  result->left_out = noise.left_out;
  result->bartlett = noise.bartlett;
  result->not_pooled = noise.unequal;
}

}  // namespace softmoe::golden
