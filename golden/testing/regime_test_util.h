// SPDX-License-Identifier: Apache-2.0
//
// regime_test_util.h - made-up runs of the experiment `regime`, for tests.
#ifndef SOFTMOE_GOLDEN_TESTING_REGIME_TEST_UTIL_H_
#define SOFTMOE_GOLDEN_TESTING_REGIME_TEST_UTIL_H_

#include <iosfwd>
#include <string>
#include <vector>

#include "golden/verdict/regime_judge.h"

namespace softmoe::golden {

// LoadRegime, cached.
const RegimeDefinitions& FrozenRegime();

// All planned runs and pilots. Sparse losses lie near 3.55 + 0.12 k^-1.5 with
// an effect of the seed; soft ones lie `effect` (nat/token) off the same curve,
// learned ones 0.02 lower; noise has deviation 0.002 or so. Infer-AE is near
// the aim, for learned rows 0.28 above their fixed ones', for the quiet row
// near 1.77; Train-AE is in the paper's interval or 0.3 less; caps are 3, for
// learned rows 3.4. Every call gives the same.
std::vector<MiniatureRun> MadeUpRegime(double effect);

// The run of a row and seed among them; InternalError if there is none.
MiniatureRun& RunOf(std::vector<MiniatureRun>& runs, const std::string& row,
                    int64_t seed);

// The estimate with this id; InternalError if there is none.
const RegimeEstimate& EstimateOf(const RegimeVerdicts& verdicts,
                                 const std::string& id);

// Used by GoogleTest's messages.
void PrintTo(RegimeStatus status, std::ostream* out);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_TESTING_REGIME_TEST_UTIL_H_
