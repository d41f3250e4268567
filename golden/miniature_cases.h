// SPDX-License-Identifier: Apache-2.0
//
// miniature_cases.h - from runs to the differences that are tested.
#ifndef SOFTMOE_GOLDEN_MINIATURE_CASES_H_
#define SOFTMOE_GOLDEN_MINIATURE_CASES_H_

#include <map>
#include <string>
#include <vector>

#include "golden/miniature.h"
#include "golden/miniature_judge.h"
#include "golden/miniature_noise.h"

namespace softmoe::golden {

// Runs by corpus, row and seed.
using RunIndex =
    std::map<std::string,
             std::map<std::string, std::map<int64_t, const MiniatureRun*>>>;

// What a measure takes from one run, and why it cannot ("" if it can). NaN
// numbers and allocations that never move are such reasons.
struct QuantityValue {
  double value = 0;
  std::string problem;
};
QuantityValue ReadQuantity(const MiniatureMeasure& measure,
                           const MiniatureRun& run);

// The cases of `measure`, rows within corpora, with estimates, errors and
// degrees of freedom; not yet tested.
std::vector<MiniatureCase> MakeCases(
    const MiniatureClaims& claims, const MiniatureMeasure& measure,
    const RunIndex& runs, const std::vector<ThroughputSamples>& throughput);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_MINIATURE_CASES_H_
