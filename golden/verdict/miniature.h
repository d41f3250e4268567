// SPDX-License-Identifier: Apache-2.0
//
// miniature.h - the paper's claims in a scale-free form, their margins, and the
// verdicts of earlier margins (paper/miniature.toml; FORMAT.md, "Claims in
// miniature").
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace softmoe::golden {

// The number that a measure takes from one run.
enum class Quantity {
  kLoss,             // final validation loss at T = 1, nat/token
  kInferAe,          // active experts of the final model on validation
  kLogLoadVariance,  // natural logarithm of the relative load variance
  kHellaswag,        // accuracy, as a fraction
  kLateShare,      // of the last layers in the final k_l, minus the uniform one
  kDepthOrder,     // Kendall's tau of the final k_l and depth
  kEarlyMovement,  // share of the final movement of k_l, early in training
  kHalvingCost,    // loss at half the Infer-AE minus that at the trained tau
  kLogThroughput,  // natural logarithm of tokens per second
};

// The reference that is subtracted from that number.
enum class Against {
  kZero,
  kBudgetGroup,        // the sparse row of the smallest k >= mean Infer-AE
  kSparseCurve,        // sparse rows, linear in k, at the same Infer-AE
  kRows,               // the row at the same place of `against_rows`
  kHalfOfSparseRange,  // (loss of the first sparse row - of the last) / 2
  kNextActiveExperts,  // the benchmark at the next larger number of experts
};

// Where the difference must lie for a case to hold: below the margin, above it,
// or in (-margin, margin).
enum class Holds { kBelow, kAbove, kWithin };

// How many cases must hold: all, more than half, or the single mean of all;
// kNone: reported without a verdict.
enum class OfCases { kEvery, kMost, kMean, kNone };

// How many of `cases` must hold.
inline int64_t CasesNeeded(OfCases of_cases, int64_t cases) {
  if (of_cases == OfCases::kNone) return 0;
  return of_cases == OfCases::kMost ? cases / 2 + 1 : cases;
}

// Whether the seed's effect, common to all rows, is removed from the deviation.
enum class Noise { kPaired, kPlain };

// One compared number, and when it supports the claim. Lists hold ids of rows,
// not names of groups.
struct MiniatureMeasure {
  std::string id, text, unit;
  Quantity quantity = Quantity::kLoss;
  std::vector<std::string> rows;
  Against against = Against::kZero;
  std::vector<std::string> against_rows;  // kRows: one for each row
  std::vector<std::string> corpora;
  OfCases of_cases = OfCases::kEvery;
  Holds holds = Holds::kBelow;
  double margin = 0;  // in `unit`
  Noise noise = Noise::kPaired;
  std::vector<std::string> pooled;          // rows of the pooled deviation
  std::vector<std::string> against_pooled;  // kHalfOfSparseRange: of that loss
  double share_of_layers = 0;  // kLateShare, kEarlyMovement: in (0, 1)
  double share_of_steps = 0;   // kEarlyMovement: in (0, 1)
  double least_movement = 0;   // kEarlyMovement: of the budget
  // kEarlyMovement: the last layers' final share of the budget in the paper,
  // and the part of that movement that the learning rates must allow.
  double final_share = 0, share_of_movement = 0;
  // kLogLoadVariance: readings of the balance loss that must have been run.
  std::vector<std::string> readings;
  double chance = 0;                   // kHellaswag: accuracy of guessing
  int64_t items = 0;                   // kHellaswag: in the task
  std::vector<double> active_experts;  // kLogThroughput: ascending
  int64_t least_samples = 0;           // kLogThroughput: at least 2
  std::string router;                  // kLogThroughput: "soft"

  bool judged() const { return of_cases != OfCases::kNone; }
  // Whether the measure uses the row; all rows compared are also pooled.
  bool Uses(const std::string& row) const;
};

// A claim is shown if all its judged measures are.
struct MiniatureClaim {
  std::string id, title;
  bool of_paper = true;  // false: a hypothesis of this project
  std::string assumes;
  std::vector<MiniatureMeasure> measures;
};

// Runs that must be in before a verdict is final.
struct PlannedRuns {
  std::vector<std::string> rows;
  std::string corpus;
  std::vector<int64_t> seeds;
};

// A claim's verdict under earlier definitions, and the present claims that
// continue it.
struct EarlierVerdict {
  std::string claim, verdict;
  std::vector<std::string> now;
  std::string why;  // what has changed
};

// Replaced definitions. Runs recorded under their hash are judged by the
// present ones, with both verdicts side by side.
struct EarlierClaims {
  std::string hash;
  int64_t procedure = 0;
  std::string frozen, why;  // when, and why they were replaced
  std::vector<EarlierVerdict> verdicts;

  // nullptr if the present claim `id` has no predecessor.
  const EarlierVerdict* Before(const std::string& id) const;
};

// The procedure that this program's judge follows (FORMAT.md, "Claims in
// miniature"). Whatever changes a verdict on an existing record makes a new
// procedure; CHANGELOG.md lists fixes that made none.
inline constexpr int64_t kMiniatureProcedure = 2;

// The contents of the file.
struct MiniatureClaims {
  double level = 0;               // of Holm's procedure over all measures
  double confidence = 0;          // of the printed intervals
  double own_deviation = 0;       // a row keeps its own above this many
  double own_deviation_rows = 0;  // at most this share of the pooled rows does
  double equal_deviations = 0;    // level of Bartlett's test before pooling
  std::vector<PlannedRuns> planned;
  std::vector<std::string> sparse;     // rows of k = 1, 2, ...
  std::vector<MiniatureClaim> claims;  // hypotheses last
  std::vector<EarlierClaims> history;

  // The judged measures of all claims and hypotheses: Holm's family.
  int64_t num_measures() const;
  // Whether any measure uses the row.
  bool Uses(const std::string& row) const;
  // The planned seeds of `row` on `corpus`; nullptr if no such run is planned.
  const std::vector<int64_t>* PlannedSeeds(const std::string& row,
                                           const std::string& corpus) const;
  // SHA-256, 64 hex digits, of everything that decides verdicts, as JSON with
  // sorted keys and all digits: all but titles, sentences, places, reasons and
  // history. Results with another hash were recorded under other margins.
  std::string Hash() const;
};

// Parses the text of such a file, which messages call `name`. Throws
// ConfigError if it is not TOML, and DataError with FILE:LINE:COLUMN if a key
// is missing (except lists of texts and of tables), unknown or of another type,
// or if the procedure or the number of measures differs. The frozen hash
// replaces all other checks.
MiniatureClaims ParseMiniatureClaims(const std::string& text,
                                     const std::string& name);

// This program's golden/paper/miniature.toml. Throws EnvironmentError if it is
// missing.
MiniatureClaims LoadMiniatureClaims();

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_H_
