// SPDX-License-Identifier: Apache-2.0
//
// percentage_counts.h - which counts a printed percentage can stand for (the
// GRIM test).
#ifndef SOFTMOE_GOLDEN_PAPER_PERCENTAGE_COUNTS_H_
#define SOFTMOE_GOLDEN_PAPER_PERCENTAGE_COUNTS_H_

#include <cstdint>
#include <vector>

#include "golden/document/decimal.h"

namespace softmoe::golden {

// All counts c in [0, total] for which 100 c / total prints as `percent` with
// its decimals under `rule` (kUnknown: under either rule), ascending; empty if
// no count does. Rounds in integer arithmetic, halves up. `total` must be in
// [1, 1e9], otherwise InternalError; `percent` may have at most 12 decimals.
std::vector<int64_t> CountsThatPrint(const Decimal& percent, int64_t total,
                                     Rounding rule);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PERCENTAGE_COUNTS_H_
