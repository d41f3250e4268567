// SPDX-License-Identifier: Apache-2.0
//
// miniature_judge.h - what the runs of the mini grid say about the paper's
// claims (FORMAT.md, "Claims in miniature"). Knows numbers and ids of runs,
// nothing about grids and files.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_JUDGE_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_JUDGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "golden/document/decimal.h"
#include "golden/verdict/miniature.h"

namespace softmoe::golden {

// k_l of every layer, first to last, after `step` updates.
struct AllocationPoint {
  int64_t step = 0;
  std::vector<double> allocation;
  double learning_rate_sum = 0;  // of those updates
};

// The final model, evaluated at `factor` times the tau of its training.
struct TauPoint {
  double factor = 1;
  double infer_ae = 0;
  double loss = 0;  // nat/token
};

// One finished run. Numbers of the final model are on validation at T = 1,
// noise off. NaN if the run diverged or does not have the number.
struct MiniatureRun {
  std::string row, corpus;  // ids, as in the plan
  int64_t seed = 0;
  double loss = 0;      // nat/token
  double infer_ae = 0;  // active experts, mean over tokens and layers
  double mean_cap =
      0;  // of the final allocation, mean over layers; sparse rows: k
  double train_ae = 0;              // shown, not judged
  double load_variance = 0;         // var/mean^2, mean over layers
  std::string load_balance;         // soft rows: reading of the balance loss
  std::optional<double> hellaswag;  // accuracy in [0, 1]
  // Rows of learned allocation: by step, ascending; the last is the end of
  // training. Before the first, training started from equal k_l.
  std::vector<AllocationPoint> allocation;
  std::vector<TauPoint>
      at_tau;  // soft rows: by factor, ascending, 1 among them
};

// What //:bench measured with one router at one number of active experts.
struct ThroughputSamples {
  double active_experts = 0;
  std::vector<double> tokens_per_second;
  std::string router;  // "sparse" or "soft"
};

// Everything that is judged.
struct MiniatureResults {
  std::vector<MiniatureRun> runs;
  std::vector<ThroughputSamples> throughput;  // empty: not measured
};

enum class MiniatureStatus {
  kShown,
  kContradicted,
  kUndecided,
  kNotTestable,
  kReported,    // not judged
  kMistrusted,  // two seeds of a row gave the same bits
  kInterim,     // planned runs are missing
};

// "SHOWN", "CONTRADICTED", "UNDECIDED", "NOT_TESTABLE", "REPORTED",
// "MISTRUSTED", "INTERIM".
const char* MiniatureStatusName(MiniatureStatus status);

// What one corpus adds to the error of a mean over corpora.
struct ErrorSource {
  double error = 0, freedom = 0;
  int64_t seeds = 0;
};

// One row on one corpus, two neighbours of the benchmark, or the mean of them
// all.
struct MiniatureCase {
  std::string label;    // "softmoe-2-calibrated - sparse-4"
  std::string corpus;   // "" for the benchmark, and for several
  int64_t seeds = 0;    // or samples
  std::string problem;  // why it cannot be tested; "" if it can
  // The rest is valid only if there is no problem; in the unit of the measure.
  double estimate = 0;     // theta
  double seed_error = 0;   // standard error over seeds
  double least_error = 0;  // of the items of an accuracy
  double freedom = 0;      // degrees of freedom of seed_error
  Interval interval;       // two-sided, at the confidence of the definitions
  // How far from the margin theta must lie for this case alone, first in Holm's
  // order, to be decided in 80 % of cases.
  double resolves = 0;
  double p_shown = 1, p_contradicted = 1;  // one-sided
  std::vector<std::string> own_deviation;  // rows whose deviation is not pooled
  // Rows that its corpus leaves out of the pool, in this difference or not.
  std::vector<std::string> left_out;
  // p of Bartlett's test; where it rejects, `not_pooled`, and the error is that
  // of the difference's own deviation.
  double bartlett = 1;
  bool not_pooled = false;
  // By that own deviation, whether or not it decides; freedom 0: unknown.
  double own_error = 0, own_freedom = 0;
  std::vector<ErrorSource> sources;  // of a mean over several corpora
  // Of active experts: the same difference of the mean caps.
  std::optional<double> cap_rise;
};

struct MiniatureMeasureVerdict {
  std::string id, text, unit;
  double margin = 0;
  MiniatureStatus status = MiniatureStatus::kUndecided;
  std::vector<MiniatureCase> cases;
  std::vector<MiniatureCase> parts;  // whose mean the one case is, if it is one
  int64_t cases_needed = 0;          // how many must hold
  // Whether enough cases can be tested for it to be shown, whatever they say.
  bool could_be_shown = false;
  // The case on which p hangs: the last one that must hold, or, if p speaks
  // against the measure, the last one that must be reversed.
  size_t deciding = 0;
  double p = 1;  // two directions; before Holm's procedure
  bool leans_to_shown = true;
  // The same with no deviation pooled; nullopt if it is not known.
  std::optional<double> p_not_pooled;
  // If UNDECIDED: how many seeds on each corpus (samples, for the benchmark)
  // would decide if everything stayed as it is; nullopt if no number up to
  // 10,000 would.
  std::optional<int64_t> seeds_needed;
  std::string reason;  // one sentence
};

struct MiniatureVerdict {
  std::string id, title;
  bool of_paper = true;  // false: a hypothesis of this project
  MiniatureStatus status = MiniatureStatus::kUndecided;
  // What the status would be if no run were missing.
  MiniatureStatus leaning = MiniatureStatus::kUndecided;
  std::string assumes;
  std::vector<MiniatureMeasureVerdict> measures;
};

// How small a difference of final losses the runs of a corpus can show.
struct MiniatureResolution {
  std::string corpus;
  int64_t rows = 0, seeds = 0;
  double plain = 0, paired = 0;  // deviations of a run, nat/token
  double paired_freedom = 0;
  // Rows that keep their own deviation, outside `plain` and `paired`.
  std::vector<std::string> plain_own, paired_own;
  // Differences between two rows that are detected in 80 % of cases, by a
  // single test and among all measures.
  double one_test = 0, family = 0;
};

struct MiniatureVerdicts {
  std::string hash;  // of the definitions
  // The earlier ones under which the runs were recorded: then every verdict
  // came after the fact.
  std::optional<EarlierClaims> recorded_under;
  int64_t planned = 0, finished = 0;
  std::vector<std::string> missing;      // "gcide/sparse-1/seed1234"
  std::vector<std::string> equal_seeds;  // "gcide/sparse-1: 1234 and 1235"
  std::vector<MiniatureVerdict> claims;
  std::vector<MiniatureResolution> resolution;  // corpora with known noise
};

// Judges the claims by the present definitions. Results that were recorded
// under earlier ones name them (RecordedUnder). Throws DataError for a run that
// is not planned or occurs twice, for steps, factors or layers out of order,
// and for a throughput that is not positive.
MiniatureVerdicts JudgeMiniature(const MiniatureClaims& claims,
                                 const MiniatureResults& results,
                                 const EarlierClaims* recorded_under = nullptr);

// Judges without hash, intervals, `resolves`, seeds_needed, reasons and
// resolution, which take most of the time and decide nothing. For simulations.
MiniatureVerdicts TestMiniature(const MiniatureClaims& claims,
                                const MiniatureResults& results);

// The earlier definitions under which results were recorded, out of the history
// of `claims`; nullptr if it was these. Throws DataError, naming both hashes,
// for any other.
const EarlierClaims* RecordedUnder(const MiniatureClaims& claims,
                                   const std::string& recorded_hash,
                                   const std::string& where);

// How far from its margin an effect with a standard error must lie for a
// two-sided test at `level` to detect it in a share `power` of cases, by t
// quantiles.
double DetectableEffect(double error, double freedom, double level,
                        double power);

// The difference between two rows with `seeds` runs each that a two-sided test
// at `level` detects in a share `power` of cases, by t quantiles.
double DetectableDifference(double deviation, double freedom, int64_t seeds,
                            double level, double power);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_JUDGE_H_
