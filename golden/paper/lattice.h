// SPDX-License-Identifier: Apache-2.0
//
// lattice.h - which counts a printed percentage can stand for (GRIM test).
#ifndef SOFTMOE_GOLDEN_PAPER_LATTICE_H_
#define SOFTMOE_GOLDEN_PAPER_LATTICE_H_

#include <cstdint>
#include <vector>

#include "golden/document/decimal.h"

namespace softmoe::golden {

// All counts c in [0, total] for which 100 c / total prints as `percent` with
// its decimals under `rule` (kUnknown: under either rule). Ascending; empty if
// no count does. Rounds in integer arithmetic, halves up. total in [1, 1e9],
// otherwise InternalError; `percent` of at most 12 decimals.
std::vector<int64_t> CountsThatPrint(const Decimal& percent, int64_t total,
                                     Rounding rule);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_LATTICE_H_
