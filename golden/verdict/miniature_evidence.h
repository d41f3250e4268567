// SPDX-License-Identifier: Apache-2.0
//
// miniature_evidence.h - combines the cases of a measure: p-values of
// differences, and of how many hold (FORMAT.md, "Claims in miniature").
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_EVIDENCE_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_EVIDENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {

// Sets both p-values of every testable case as if each had `seeds` seeds, or
// with its own number if nullopt.
void TestCases(const MiniatureMeasure& measure, std::optional<int64_t> seeds,
               std::vector<MiniatureCase>* cases);

// The joint result of a measure's cases.
struct MeasureTest {
  double p = 1;
  bool leans_to_shown = true;
  size_t deciding = 0;
};

// Combines the cases, of which `needed` (at least 1) must hold. Tests both
// directions.
MeasureTest Combine(const std::vector<MiniatureCase>& cases, int64_t needed);

// Whether an estimate of theta lies where `holds` wants theta.
bool PointsToClaim(const MiniatureMeasure& measure, double estimate);

// For cases that do not decide yet: the least number of seeds per case for
// which Combine's p is at most `level` if estimates and deviations stay the
// same; nullopt if 10,000 are not enough.
std::optional<int64_t> SeedsNeeded(const MiniatureMeasure& measure,
                                   std::vector<MiniatureCase> cases,
                                   int64_t needed, double level);

// How far from its margin an effect with this standard error must lie for a
// two-sided test at `level` to detect it with probability `power`, by t
// quantiles.
double DetectableEffect(double error, double freedom, double level,
                        double power);

// The difference between two rows with `seeds` runs each that a two-sided test
// at `level` detects with probability `power`, by t quantiles.
double DetectableDifference(double deviation, double freedom, int64_t seeds,
                            double level, double power);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_EVIDENCE_H_
