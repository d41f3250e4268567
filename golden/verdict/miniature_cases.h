// SPDX-License-Identifier: Apache-2.0
//
// miniature_cases.h - from runs to the differences that are tested.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_CASES_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_CASES_H_

#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// The cases that a measure tests and, if the only one is a mean, its parts.
struct MeasureCases {
  std::vector<MiniatureCase> cases, parts;
};

// The cases of `measure`, rows within corpora, with estimates, errors and
// degrees of freedom; not yet tested.
MeasureCases MakeCases(const MiniatureClaims& claims,
                       const MiniatureMeasure& measure, const RunIndex& runs,
                       const std::vector<ThroughputSamples>& throughput);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_CASES_H_
