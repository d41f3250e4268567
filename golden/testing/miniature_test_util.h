// SPDX-License-Identifier: Apache-2.0
//
// miniature_test_util.h - made-up runs of the mini grid and of the experiment
// `regime`, for tests.
#ifndef SOFTMOE_GOLDEN_TESTING_MINIATURE_TEST_UTIL_H_
#define SOFTMOE_GOLDEN_TESTING_MINIATURE_TEST_UTIL_H_

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/regime_judge.h"

namespace softmoe::golden {

// Changes one made-up run; `index` counts the seeds of its row from 0.
using RunChange = std::function<void(size_t index, MiniatureRun* run)>;

// LoadMiniatureClaims, cached.
const MiniatureClaims& FrozenClaims();

// All planned runs, such that every claim is shown except C6 and H2, which have
// no numbers. Learned rows use the other reading of the balance loss, and
// learning rates sufficient for C3. Each final loss has the effect of its seed,
// 0.05 * (1, -1, 0.6, -0.6), and noise whose deviation is MadeUpDeviation();
// Infer-AE, load variance and allocation have a little noise. `change` is
// called last.
MiniatureResults MadeUpResults(const MiniatureClaims& claims,
                               const RunChange& change = {});

// JudgeMiniature of MadeUpResults of FrozenClaims.
MiniatureVerdicts JudgeMadeUp(const RunChange& change = {});

// Adds to the final loss if the run belongs to `row`.
void AddToLoss(const std::string& row, double difference, MiniatureRun* run);

// The exact deviation of the losses of MadeUpResults without the effects of
// rows and seeds, pooled over the nine main rows of gcide.
double MadeUpDeviation();

// Error of a sum of a hundred numbers near 3, each rounded once or twice.
inline constexpr double kRounding = 1e-13;

// `num_claims` (1 to 12) claims "P1", "P2", ... of one measure each, on nine
// rows r1 to r9, corpus "text", seeds 1 to `num_seeds`: that one row's loss is
// below another's. P1 compares r1 with r2; no other claim does.
MiniatureClaims PairClaims(int num_claims, int num_seeds);

// Used by GoogleTest's messages.
void PrintTo(MiniatureStatus status, std::ostream* out);
void PrintTo(RegimeStatus status, std::ostream* out);

// A verdict by its id. InternalError if there is none.
const MiniatureVerdict& ClaimOf(const MiniatureVerdicts& verdicts,
                                const std::string& id);
const MiniatureMeasureVerdict& MeasureOf(const MiniatureVerdicts& verdicts,
                                         const std::string& id);
// A case of a measure, or of its parts, found by corpus and the first row in
// its label.
const MiniatureCase& CaseOf(const MiniatureVerdicts& verdicts,
                            const std::string& measure,
                            const std::string& corpus, const std::string& row);

// ---- The experiment `regime`.

// LoadRegime, cached.
const RegimeDefinitions& FrozenRegime();

// All planned runs and pilots. Sparse losses lie near 3.55 + 0.12 k^-1.5 with
// an effect of the seed; soft ones lie `effect` (nat/token) off the same curve,
// learned ones 0.02 lower; noise has deviation 0.002 or so. Infer-AE is near
// the aim, for learned rows 0.28 above their fixed ones', for the quiet row
// near 1.77; Train-AE is in the paper's interval or 0.3 less; caps are 3, for
// learned rows 3.4, for sparse rows k. Every call gives the same.
std::vector<MiniatureRun> MadeUpRegime(double effect);

// The run of a row and seed among them; InternalError if there is none.
MiniatureRun& RunOf(std::vector<MiniatureRun>& runs, const std::string& row,
                    int64_t seed);

// The estimate with this id; InternalError if there is none.
const RegimeEstimate& EstimateOf(const RegimeVerdicts& verdicts,
                                 const std::string& id);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_TESTING_MINIATURE_TEST_UTIL_H_
