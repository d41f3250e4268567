// SPDX-License-Identifier: Apache-2.0
//
// miniature_scatter.h - the error of a case, from the scatter of its rows.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_SCATTER_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_SCATTER_H_

#include <cstdint>
#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/miniature_noise.h"

namespace softmoe::golden {

// The scatter of a corpus or of a benchmark, and the numbers it was estimated
// from.
struct Scatter {
  SeedValues values;
  RowNoise noise;
  Noise kind = Noise::kPlain;
};

// Stores the error of the sum in the case: ErrorOf, or OwnErrorOf if nothing is
// pooled. `seeds`: common to all terms, or empty if they are not paired.
void SetError(const std::vector<Term>& terms, const Scatter& scatter,
              const std::vector<int64_t>& seeds, MiniatureCase* result);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_SCATTER_H_
