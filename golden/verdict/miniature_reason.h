// SPDX-License-Identifier: Apache-2.0
//
// miniature_reason.h - why a measure of a claim in miniature has its verdict,
// in a sentence.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_REASON_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_REASON_H_

#include <string>
#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// The reason of a measure that has its status. equal_seeds: as in
// MiniatureVerdicts.
std::string ReasonOf(const MiniatureMeasure& definition,
                     const MiniatureMeasureVerdict& measure,
                     const std::vector<std::string>& equal_seeds);

// "gcide: there are no accuracies": why cases cannot be tested, each once,
// since most have the same.
std::vector<std::string> ProblemTexts(const std::vector<MiniatureCase>& cases);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_REASON_H_
