// SPDX-License-Identifier: Apache-2.0
//
// miniature_throughput.h - from a benchmark's samples to the differences that
// are tested.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_THROUGHPUT_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_THROUGHPUT_H_

#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// Neighbours in active experts of the measure, by the logarithm of speed, with
// estimates, errors and degrees of freedom; not yet tested.
std::vector<MiniatureCase> ThroughputCases(
    const MiniatureClaims& claims, const MiniatureMeasure& measure,
    const std::vector<ThroughputSamples>& throughput);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_THROUGHPUT_H_
