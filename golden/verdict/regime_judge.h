// SPDX-License-Identifier: Apache-2.0
//
// regime_judge.h - whether soft routing is better than sparse routing at equal
// active experts, by the runs of the experiment `regime` (FORMAT.md, "The
// regime experiment"). Knows numbers and ids of runs, nothing about grids and
// files.
#ifndef SOFTMOE_GOLDEN_VERDICT_REGIME_JUDGE_H_
#define SOFTMOE_GOLDEN_VERDICT_REGIME_JUDGE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_enums.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/regime.h"
#include "golden/verdict/regime_curve.h"

namespace softmoe {

template <>
struct EnumNames<golden::RegimeStatus> {
  static constexpr std::pair<golden::RegimeStatus, const char*> kNames[] = {
      {golden::RegimeStatus::kSuperior, "SUPERIOR"},
      {golden::RegimeStatus::kMatches, "MATCHES"},
      {golden::RegimeStatus::kInferior, "INFERIOR"},
      {golden::RegimeStatus::kUndecided, "UNDECIDED"},
      {golden::RegimeStatus::kNotTestable, "NOT_TESTABLE"},
      {golden::RegimeStatus::kMistrusted, "MISTRUSTED"},
      {golden::RegimeStatus::kInterim, "INTERIM"}};
};

}  // namespace softmoe

namespace softmoe::golden {

inline const char* RegimeStatusName(RegimeStatus status) {
  return EnumName(status);
}

// One row's existing runs. Means, in active experts, are over the runs that
// have the number; NaN if none has.
struct RegimeRowRuns {
  std::string id, role;
  int64_t planned = 0, judged = 0, pilots = 0;
  double aim = 0, pilot_ae = 0;       // aim 0: no pilots
  double infer_ae = 0, train_ae = 0;  // means over the judged runs
  double paper_train_low = 0, paper_train_high = 0;
  std::string problem;         // why the row cannot be judged; "" if it can
  bool infer_ae_only = false;  // Train-AE is not the paper's
};

// A difference of losses in nat/token: rows from the sparse curve, or learned
// rows from fixed ones.
struct RegimeEstimate {
  std::string id;    // "primary", "row.regime-1", "C5.loss", ...
  std::string text;  // what is subtracted from what
  std::vector<std::string> rows;
  RegimeStatus status = RegimeStatus::kUndecided;
  // The status if no run were missing.
  RegimeStatus leaning = RegimeStatus::kUndecided;
  std::string reason;                      // for NOT_TESTABLE and MISTRUSTED
  std::vector<std::string> infer_ae_only;  // rows with other Train-AE
  // Valid unless NOT_TESTABLE.
  std::vector<int64_t> seeds;
  std::vector<RegimeReading> readings;  // linear and smooth; C5: the difference
  double exponent = 0;                  // p of the smooth curve; C5: 0
  bool worse = false;                   // lower ends above 0 in all readings
};

// A question to the judge with a known answer.
struct RegimeControl {
  std::string id;       // "relabelled", "halves", "left_out"
  std::string text;     // the expected outcome
  std::string problem;  // why it cannot be asked; "" if it can
  bool failed = false;  // never for "left_out", which is only reported
  // Relabelled row: both distances; halves: their difference; left-out row:
  // predicted minus measured loss; in nat/token.
  std::vector<RegimeReading> readings;
  double confidence = 0;  // of their intervals
  double exponent = 0;    // of the curve without the row
};

// How much the Infer-AE of learned rows exceeds that of their fixed ones, as
// the mean over rows, and the rise in the caps, which are rounded up.
struct RegimeExperts {
  std::string problem;  // why there are no numbers; "" if there are
  std::vector<int64_t> seeds;
  RegimeReading rise, caps;  // active experts
};

struct RegimeVerdicts {
  std::string hash;  // the definitions'
  double confidence = 0, margin = 0;
  Interval exponents;
  // Including pilots; finished: also those that diverged.
  int64_t planned = 0, finished = 0;
  std::vector<std::string> missing;      // "gcide/sparse-1/seed1234"
  std::vector<std::string> equal_seeds;  // "regime-1: 1234 and 1235"
  std::vector<RegimeRowRuns> rows;
  std::vector<RegimeEstimate> estimates;  // the primary one first
  std::vector<RegimeControl> controls;
  RegimeExperts experts;

  // Whether two seeds gave the same bits, or a verdict is MISTRUSTED.
  bool mistrusted() const;
};

// Judges the runs, including pilots. Throws DataError for a run that is not
// planned or occurs twice, a sparse one whose Infer-AE is not its k, and
// different readings of the balance loss.
RegimeVerdicts JudgeRegime(const RegimeDefinitions& definitions,
                           const std::vector<MiniatureRun>& runs);

// Whether a row with this Train-AE supports statements about Infer-AE only: it
// is not the paper's Train-AE of that row.
bool IsInferAeOnly(const RegimeDefinitions& definitions, const RegimeRow& row,
                   double train_ae);

// Whether the runs belong to this experiment: some are of a soft row.
bool HasRegimeRuns(const RegimeDefinitions& definitions,
                   const std::vector<MiniatureRun>& runs);

// Throws DataError, naming both, if runs were recorded under definitions with
// another hash than those of this program.
void RequireSameRegime(const RegimeDefinitions& definitions,
                       const std::string& recorded_hash,
                       const std::string& where);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_REGIME_JUDGE_H_
