// SPDX-License-Identifier: Apache-2.0
//
// miniature_judge.h - judges the paper's claims by the runs of the mini grid
// (FORMAT.md, "Claims in miniature"). Knows numbers and ids of runs, nothing
// about grids and files.
#ifndef SOFTMOE_GOLDEN_VERDICT_MINIATURE_JUDGE_H_
#define SOFTMOE_GOLDEN_VERDICT_MINIATURE_JUDGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_enums.h"
#include "golden/document/decimal.h"
#include "golden/verdict/miniature.h"

namespace softmoe::golden {

// k_l of every layer, first to last, after `step` updates.
struct AllocationPoint {
  int64_t step = 0;
  std::vector<double> allocation;
  double learning_rate_sum = 0;  // learning rates of those updates
};

// The final model evaluated at `factor` times its training tau.
struct TauPoint {
  double factor = 1;
  double infer_ae = 0;
  double loss = 0;  // nat/token
};

// One run that ended. Numbers of the final model are on validation at T = 1,
// noise off. NaN if the run diverged or does not have the number.
struct MiniatureRun {
  std::string row, corpus;  // ids, as in the plan
  int64_t seed = 0;
  double loss = 0;      // nat/token
  double infer_ae = 0;  // active experts, mean over tokens and layers
  double mean_cap =
      0;  // from the final allocation, mean over layers; sparse rows: k
  double train_ae = 0;              // shown, not judged
  double load_variance = 0;         // var/mean^2, mean over layers
  std::string load_balance;         // soft rows: reading of the balance loss
  std::optional<double> hellaswag;  // accuracy in [0, 1]
  // Rows with learned allocation, ascending by step; the last is the end of
  // training. Training starts with equal k_l before the first.
  std::vector<AllocationPoint> allocation;
  std::vector<TauPoint> at_tau;  // soft rows: ascending by factor, including 1
};

// The runs of one row by seed; and the runs of all corpora and rows.
using SeedRuns = std::map<int64_t, const MiniatureRun*>;
using RunIndex = std::map<std::string, std::map<std::string, SeedRuns>>;

// "1234 and 1235": runs of one row under different seeds whose losses agree to
// the last bit, which those of different seeds never do.
std::vector<std::string> EqualSeeds(const SeedRuns& runs);

// "gcide/sparse-1/seed1234".
std::string NameOfRun(const std::string& corpus, const std::string& row,
                      int64_t seed);

// The result of //:bench for one router at one number of active experts.
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

}  // namespace softmoe::golden

namespace softmoe {

template <>
struct EnumNames<golden::MiniatureStatus> {
  static constexpr std::pair<golden::MiniatureStatus, const char*> kNames[] = {
      {golden::MiniatureStatus::kShown, "SHOWN"},
      {golden::MiniatureStatus::kContradicted, "CONTRADICTED"},
      {golden::MiniatureStatus::kUndecided, "UNDECIDED"},
      {golden::MiniatureStatus::kNotTestable, "NOT_TESTABLE"},
      {golden::MiniatureStatus::kReported, "REPORTED"},
      {golden::MiniatureStatus::kMistrusted, "MISTRUSTED"},
      {golden::MiniatureStatus::kInterim, "INTERIM"}};
};

}  // namespace softmoe

namespace softmoe::golden {

inline const char* MiniatureStatusName(MiniatureStatus status) {
  return EnumName(status);
}

// One corpus's part of the error of a mean over corpora.
struct ErrorSource {
  double error = 0, freedom = 0;
  int64_t seeds = 0;
};

// One row on one corpus, two neighbours of the benchmark, or the mean of all
// cases.
struct MiniatureCase {
  std::string label;    // "softmoe-2-calibrated - sparse-4"
  std::string corpus;   // "" for the benchmark and for several corpora
  int64_t seeds = 0;    // the seeds' number, or the samples'
  std::string problem;  // why the case cannot be tested; "" if it can
  // Valid only without a problem; in the measure's unit.
  double estimate = 0;     // theta
  double seed_error = 0;   // standard error over seeds
  double least_error = 0;  // from the items of an accuracy
  double freedom = 0;      // degrees of freedom of seed_error
  Interval interval;       // two-sided, at the definitions' confidence
  // How far theta must lie from the margin for this case alone, first in Holm's
  // order, to be decided in 80 % of cases.
  double resolves = 0;
  double p_shown = 1, p_contradicted = 1;  // one-sided
  std::vector<std::string> own_deviation;  // rows whose deviation is not pooled
  // Rows that the corpus leaves out of the pool, whether or not this difference
  // contains them.
  std::vector<std::string> left_out;
  // p of Bartlett's test. If it rejects, `not_pooled` is set and the error uses
  // the difference's own deviation.
  double bartlett = 1;
  bool not_pooled = false;
  // By that own deviation, whether or not it is used; freedom 0: unknown.
  double own_error = 0, own_freedom = 0;
  std::vector<ErrorSource> sources;  // for a mean over several corpora
  // Active experts only: the same difference of the mean caps.
  std::optional<double> cap_rise;
};

struct MiniatureMeasureVerdict {
  std::string id, text, unit;
  double margin = 0;
  MiniatureStatus status = MiniatureStatus::kUndecided;
  std::vector<MiniatureCase> cases;
  std::vector<MiniatureCase> parts;  // if the one case is a mean: its parts
  int64_t cases_needed = 0;          // how many cases must hold
  // Whether enough cases can be tested to show it, whatever they say.
  bool could_be_shown = false;
  // The case that determines p: the last one that must hold or, if p speaks
  // against the measure, the last one that must be reversed.
  size_t deciding = 0;
  double p = 1;  // both directions, before Holm's procedure
  bool leans_to_shown = true;
  // p with no deviation pooled; nullopt if unknown.
  std::optional<double> p_not_pooled;
  // If UNDECIDED: the number of seeds per corpus (samples, for the benchmark)
  // that would decide if everything else stayed the same; nullopt if no number
  // up to 10,000 does.
  std::optional<int64_t> seeds_needed;
  std::string reason;  // one sentence
};

struct MiniatureVerdict {
  std::string id, title;
  bool of_paper = true;  // false: a hypothesis of this project
  MiniatureStatus status = MiniatureStatus::kUndecided;
  // The status if no run were missing.
  MiniatureStatus leaning = MiniatureStatus::kUndecided;
  std::string assumes;
  std::vector<MiniatureMeasureVerdict> measures;
};

// The smallest difference of final losses that a corpus's runs can show.
struct MiniatureResolution {
  std::string corpus;
  int64_t rows = 0, seeds = 0;
  double plain = 0, paired = 0;  // a run's deviations, nat/token
  double paired_freedom = 0;
  // Rows with their own deviation, not part of `plain` and `paired`.
  std::vector<std::string> plain_own, paired_own;
  // Differences between two rows that are detected in 80 % of cases, by a
  // single test and among all measures.
  double one_test = 0, family = 0;
};

struct MiniatureVerdicts {
  std::string hash;  // the definitions'
  // The earlier definitions under which the runs were recorded; if set, every
  // verdict came after the fact.
  std::optional<EarlierClaims> recorded_under;
  int64_t planned = 0, finished = 0;     // finished: also those that diverged
  std::vector<std::string> missing;      // "gcide/sparse-1/seed1234"
  std::vector<std::string> equal_seeds;  // "gcide/sparse-1: 1234 and 1235"
  std::vector<MiniatureVerdict> claims;
  std::vector<MiniatureResolution> resolution;  // corpora with known noise
};

// Judges the claims by the present definitions. `recorded_under`: earlier ones
// under which the results were recorded. Throws DataError for a run that is not
// planned or occurs twice, for steps, factors or layers out of order, for sums
// of learning rates that fall, and for a throughput that is not positive or is
// given twice.
MiniatureVerdicts JudgeMiniature(const MiniatureClaims& claims,
                                 const MiniatureResults& results,
                                 const EarlierClaims* recorded_under = nullptr);

// Judges without hash, intervals, `resolves`, seeds_needed, p_not_pooled,
// reasons, resolution, and the p-values of parts and of measures that are only
// reported: these take most of the time and decide nothing. For simulations.
MiniatureVerdicts TestMiniature(const MiniatureClaims& claims,
                                const MiniatureResults& results);

// The earlier definitions in the history of `claims` under which results were
// recorded; nullptr if they were the present ones. Throws DataError, naming
// both hashes, for any others.
const EarlierClaims* RecordedUnder(const MiniatureClaims& claims,
                                   const std::string& recorded_hash,
                                   const std::string& where);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_MINIATURE_JUDGE_H_
