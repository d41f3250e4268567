// SPDX-License-Identifier: Apache-2.0
//
// The experiment regime: its definitions, the arithmetic of its curve, the
// judge, its report, and golden/oracles/regime.json, judged by a Python program
// that shares only FORMAT.md and the definitions with this one
// (golden/oracles/README.md).
#include "golden/verdict/regime.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/regime_curve.h"
#include "golden/verdict/regime_judge.h"
#include "golden/verdict/regime_report.h"

namespace softmoe::golden {
namespace {

using nlohmann::json;

// ---- Definitions.

// The file with the first `from` replaced.
std::string ChangedRegime(const std::string& from, const std::string& to) {
  return Replaced(ReadWholeFile(RunfilePath("golden/paper/regime.toml")), from,
                  to);
}

TEST(RegimeDefinitions, PlansRunsAndPilots) {
  const RegimeDefinitions& regime = FrozenRegime();
  EXPECT_EQ(regime.corpus, "gcide");
  EXPECT_EQ(regime.margin, 0.01);
  size_t runs = 0, pilots = 0;
  for (const RegimeRow& row : regime.rows) {
    runs += row.seeds.size();
    for (const int64_t seed : regime.pilot_seeds) {
      pilots += regime.IsPilot(row.id, seed);
      EXPECT_FALSE(regime.Judges(row.id, seed));
    }
    for (const int64_t seed : row.seeds) {
      EXPECT_TRUE(regime.Judges(row.id, seed));
      EXPECT_FALSE(regime.IsPilot(row.id, seed));
    }
  }
  EXPECT_EQ(runs, 48u + 36 + 12 + 16);
  EXPECT_EQ(pilots, 8u);  // of four rows
  EXPECT_EQ(regime.RowsOf("primary").size(), 3u);
  EXPECT_EQ(regime.Row("regime-learned-2")->fixed, "regime-2");
  EXPECT_EQ(regime.Row("regime-3"), nullptr);
  EXPECT_FALSE(regime.Judges("regime-3", 1234));
  EXPECT_FALSE(regime.Judges("regime-1.5-quiet", 1238));
  EXPECT_FALSE(regime.IsPilot("sparse-1", 7001));
}

// Frozen before the first judged run. Another hash refuses all earlier results.
TEST(RegimeDefinitions, HashIsTheFrozenOne) {
  EXPECT_EQ(LoadRegime().Hash(),
            "0bbe0d0891f61e8e0feaf077633ebccc5498d6a68fb1d681f531c68f45aa05e3");
}

TEST(RegimeDefinitions, HashCoversWhatDecidesAndNothingElse) {
  const std::string frozen = FrozenRegime().Hash();
  auto hash = [](const std::string& from, const std::string& to) {
    return ParseRegime(ChangedRegime(from, to), "changed").Hash();
  };
  EXPECT_EQ(hash("# The experiment", "# An experiment"), frozen);
  const std::pair<const char*, const char*> kDeciding[] = {
      {"\"gcide\"", "\"foldoc\""},
      {"confidence = 0.95", "confidence = 0.9"},
      {"margin = 0.01", "margin = 0.02"},
      {"infer_ae_within = 0.2", "infer_ae_within = 0.3"},
      {"train_ae_within = 0.3", "train_ae_within = 0.2"},
      {"[0.1, 10.0]", "[0.2, 10.0]"},
      {"[0.1, 10.0]", "[0.1, 9.0]"},
      {"[7001, 7002]", "[7001, 7003]"},
      {"known_seeds = [1234, 1235", "known_seeds = [1234, 1238"},
      {"\"sparse-3\"   #", "\"sparse-4\"   #"},
      {"relabelled_at = 2.0", "relabelled_at = 2.5"},
      {"halved = \"regime-1.5\"", "halved = \"regime-2\""},
      {"halves_level = 0.01", "halves_level = 0.02"},
      {"left_out = \"sparse-2\"", "left_out = \"sparse-3\""},
      {"infer_ae = 3.78", "infer_ae = 3.79"},
      {"paper_train_ae = [3.60,", "paper_train_ae = [3.61,"},
      {"3.64]", "3.65]"},
      {"id = \"regime-1.5-T1\"", "id = \"regime-1.5-T2\""},
      {"role = \"secondary\"", "role = \"learned\"\nfixed = \"regime-1\""},
      {"fixed = \"regime-2\"", "fixed = \"regime-1\""},
      {"1240, 1241]\n\n[[rows]]\nid = \"regime-1.5-quiet\"",
       "1240]\n\n[[rows]]\nid = \"regime-1.5-quiet\""},
      {"infer_ae = 4.0", "infer_ae = 5.0"}};
  std::set<std::string> hashes = {frozen};
  for (const auto& [from, to] : kDeciding) {
    EXPECT_TRUE(hashes.insert(hash(from, to)).second) << from;
  }
}

void ExpectRegimeRefused(const std::string& from, const std::string& to,
                         const std::string& message) {
  const std::string what = MessageOf<DataError>(
      [&] { ParseRegime(ChangedRegime(from, to), "changed.toml"); });
  EXPECT_TRUE(Says(what, message)) << to;
  EXPECT_EQ(what.find("changed.toml:"), 0u) << what;
}

TEST(RegimeDefinitions, FilesOfAnotherFormAreRefusedWithTheirPlace) {
  ExpectRegimeRefused("procedure = 1", "procedure = 2",
                      "'procedure' must be 1");
  ExpectRegimeRefused("[rule]", "[rules]", "the table [rule] is missing");
  ExpectRegimeRefused("[controls]", "[control]",
                      "the table [controls] is missing");
  ExpectRegimeRefused("margin = 0.01", "margn = 0.01", "'margin' is missing");
  for (const std::string ends : {"[0.1]", "[0.1, 10.0, 11.0]"}) {
    ExpectRegimeRefused("exponents = [0.1, 10.0]", "exponents = " + ends,
                        "'exponents' must be [LOW, HIGH]");
  }
}

// Rows are compared seed by seed.
TEST(RegimeDefinitions, EveryRunHasThoseThatItIsComparedWith) {
  const RegimeDefinitions& regime = FrozenRegime();
  for (const RegimeRow& row : regime.rows) {
    for (const int64_t seed : row.seeds) {
      for (const RegimeRow* sparse : regime.RowsOf("sparse")) {
        EXPECT_TRUE(regime.Judges(sparse->id, seed)) << row.id << " " << seed;
      }
      if (row.role != "learned") continue;
      EXPECT_TRUE(regime.Judges(row.fixed, seed)) << row.id << " " << seed;
    }
    if (row.role != "primary") continue;
    EXPECT_EQ(row.seeds, regime.RowsOf("primary")[0]->seeds) << row.id;
  }
  for (const int64_t seed : regime.known_seeds) {
    EXPECT_TRUE(regime.Judges("sparse-1", seed)) << seed;
  }
  std::vector<int64_t> halves = regime.controls.first_half;
  std::ranges::copy(regime.controls.second_half, std::back_inserter(halves));
  EXPECT_EQ(halves, regime.Row(regime.controls.halved)->seeds);
}

// An unread key would be a rule without effect.
TEST(RegimeDefinitions, UnknownKeysAreRefusedInEveryTable) {
  for (const char* before : {"[rule]", "margin = 0.01", "relabelled_at = 2.0",
                             "role = \"secondary\""}) {
    const std::string to = before == std::string("[rule]")
                               ? "odd = 1\n[rule]"
                               : std::string("odd = 1\n") + before;
    ExpectRegimeRefused(before, to, "unknown key 'odd'");
  }
  ExpectRegimeRefused("role = \"secondary\"",
                      "role = \"secondary\"\nfixed = \"regime-1\"",
                      "unknown key 'fixed'");
}

// ---- Arithmetic.

const std::vector<double> kK = {1, 2, 3, 4};

std::vector<double> OnCurve(double a, double b, double p) {
  std::vector<double> losses;
  for (const double k : kK) losses.push_back(a + b * std::pow(k, -p));
  return losses;
}

TEST(RegimeCurve, FindsTheExponentOfACurve) {
  for (const double p : {0.11, 0.5, 1.0, 1.44, 3.0, 9.0}) {
    // Residuals are 1e-15; away from p they grow by at least 1e-4 per unit.
    EXPECT_NEAR(SmoothExponent(kK, OnCurve(3.5, 0.12, p), {0.1, 10}) / p, 1,
                1e-9);
    EXPECT_NEAR(ReadSmoothCurve(kK, OnCurve(3.5, 0.12, p), p, 2.7),
                3.5 + 0.12 * std::pow(2.7, -p), 1e-13);
  }
  // A p beyond the range gives the end of the range.
  EXPECT_NEAR(SmoothExponent(kK, OnCurve(3.5, 0.12, 3), {0.1, 2}), 2, 1e-9);
  EXPECT_NEAR(SmoothExponent(kK, OnCurve(3.5, 0.12, 0.5), {1, 2}), 1, 1e-9);
  // Where every p fits, it is the smallest.
  EXPECT_NEAR(SmoothExponent(kK, {3, 3, 3, 3}, {0.1, 10}), 0.1, 1e-9);
  // For losses off any curve, no other p fits better.
  const std::vector<double> losses = {3.68, 3.6, 3.59, 3.57};
  const double best = SmoothExponent(kK, losses, {0.1, 10});
  auto squares = [&](double p) {
    double sum = 0;
    for (size_t i = 0; i < kK.size(); ++i) {
      sum += std::pow(losses[i] - ReadSmoothCurve(kK, losses, p, kK[i]), 2);
    }
    return sum;
  };
  for (double p = 0.1; p < 10; p *= 1.001) EXPECT_LE(squares(best), squares(p));
}

RegimeTable TwoSeeds() {
  // The second seed's curve is steeper: its own p would differ.
  return {.k = kK,
          .sparse = {{3.8, 3.6, 3.5, 3.48}, {3.9, 3.5, 3.5, 3.4}},
          .loss = {{3.7, 3.5}, {3.7, 3.4}},
          .active = {{1.25, 4}, {1.5, 2}}};
}

TEST(RegimeCurve, DistancesAreMeansOverRowsAtEachRunsOwnExperts) {
  const RegimeDistances distances = DistancesFromCurve(TwoSeeds(), {0.1, 10});
  ASSERT_EQ(distances.linear.size(), 2u);
  EXPECT_NEAR(distances.linear[0], ((3.7 - 3.75) + (3.5 - 3.48)) / 2, 1e-14);
  EXPECT_NEAR(distances.linear[1], ((3.7 - 3.7) + (3.4 - 3.5)) / 2, 1e-14);
}

TEST(RegimeCurve, OneExponentForAllSeeds) {
  const RegimeTable table = TwoSeeds();
  const RegimeDistances distances = DistancesFromCurve(table, {0.1, 10});
  const std::vector<double> means = {3.85, 3.55, 3.5, 3.44};
  const double p = SmoothExponent(kK, means, {0.1, 10});
  EXPECT_NEAR(distances.exponent, p, 1e-9);
  for (size_t s = 0; s < 2; ++s) {
    double expected = 0;
    for (size_t r = 0; r < 2; ++r) {
      expected += (table.loss[s][r] - ReadSmoothCurve(kK, table.sparse[s], p,
                                                      table.active[s][r])) /
                  2;
    }
    EXPECT_NEAR(distances.smooth[s], expected, 1e-11);
    EXPECT_GT(std::abs(SmoothExponent(kK, table.sparse[s], {0.1, 10}) - p),
              0.1);
  }
}

TEST(RegimeCurve, ReadingsAreStudents) {
  // t with 2 degrees of freedom: 4.302653 at 97.5 %.
  const RegimeReading reading = ReadingOf({1, 2, 6}, 0.95);
  EXPECT_EQ(reading.estimate, 3);
  EXPECT_NEAR(reading.error, std::sqrt(7.0 / 3), 1e-15);
  EXPECT_NEAR(reading.interval.high, 3 + 4.302652730 * std::sqrt(7.0 / 3),
              1e-8);
  EXPECT_NEAR(reading.interval.low, 3 - 4.302652730 * std::sqrt(7.0 / 3), 1e-8);
  // 3 degrees of freedom: 5.840909 at 99.5 %.
  const RegimeReading difference = DifferenceOf({1, 2, 6}, {4, 6}, 0.99);
  const double error = std::sqrt(16.0 / 3 * (1.0 / 3 + 1.0 / 2));
  EXPECT_EQ(difference.estimate, -2);
  EXPECT_NEAR(difference.error, error, 1e-15);
  EXPECT_NEAR(difference.interval.low, -2 - 5.840909310 * error, 1e-8);
  EXPECT_NEAR(difference.interval.high, -2 + 5.840909310 * error, 1e-8);
}

TEST(RegimeCurve, VerdictsNeedMoreThanTheirLimits) {
  using enum RegimeStatus;
  EXPECT_EQ(DecideRegime({{0, 1, {-1, 0}}}, 0.01), kMatches);
  EXPECT_EQ(DecideRegime({{0, 1, {-1, 0.01}}}, 0.01), kUndecided);
  EXPECT_EQ(DecideRegime({{0, 1, {0, 1}}}, 0.01), kUndecided);
}

// ---- The judge.

RegimeVerdicts JudgeRuns(const std::vector<MiniatureRun>& runs) {
  return JudgeRegime(FrozenRegime(), runs);
}

RegimeStatus PrimaryOf(const std::vector<MiniatureRun>& runs) {
  return JudgeRuns(runs).estimates.front().status;
}

TEST(RegimeJudge, PilotsChooseAndAreNotCounted) {
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  const RegimeVerdicts before = JudgeRuns(runs);
  for (MiniatureRun& run : runs) {
    if (run.seed >= 7000) run.loss += 1, run.train_ae += 1;
  }
  const RegimeVerdicts after = JudgeRuns(runs);
  EXPECT_EQ(RegimeJson(after).dump(), RegimeJson(before).dump());
  for (const RegimeRowRuns& row : after.rows) {
    EXPECT_EQ(row.judged, row.planned) << row.id;
    EXPECT_EQ(row.pilots, row.aim > 0 ? 2 : 0) << row.id;
  }
}

TEST(RegimeJudge, ARowWhosePilotsMissTheirAimIsNotTestable) {
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  for (const int64_t seed : {7001, 7002}) {
    RunOf(runs, "regime-2", seed).infer_ae = 3.37 + 0.19;
  }
  EXPECT_EQ(PrimaryOf(runs), RegimeStatus::kSuperior);
  RunOf(runs, "regime-2", 7002).infer_ae = 3.37 + 0.22;
  const RegimeVerdicts verdicts = JudgeRuns(runs);
  for (const char* id :
       {"primary", "primary.new_seeds", "primary.train_ae", "row.regime-2",
        "row.regime-2.train_ae", "C5.loss", "C5.loss.regime-learned-2"}) {
    EXPECT_EQ(EstimateOf(verdicts, id).status, RegimeStatus::kNotTestable)
        << id;
    EXPECT_TRUE(
        Says(EstimateOf(verdicts, id).reason,
             "the pilots of 'regime-2' have 3.575 active experts, not within "
             "0.2 of 3.37"));
  }
  EXPECT_TRUE(Says(verdicts.experts.problem, "the pilots of 'regime-2'"));
  for (const char* id : {"row.regime-1", "C1b", "C5.loss.regime-learned-1.5"}) {
    EXPECT_NE(EstimateOf(verdicts, id).status, RegimeStatus::kNotTestable)
        << id;
  }
  RunOf(runs, "regime-2", 7002).infer_ae = NAN;
  EXPECT_EQ(EstimateOf(JudgeRuns(runs), "primary").reason,
            "'regime-2' has a pilot that gave no number");
  std::erase_if(runs, [](const MiniatureRun& run) {
    return run.row == "regime-2" && run.seed >= 7000;
  });
  const RegimeEstimate without = EstimateOf(JudgeRuns(runs), "primary");
  EXPECT_EQ(without.leaning, RegimeStatus::kNotTestable);
  EXPECT_TRUE(Says(without.reason, "'regime-2' has no pilot"));
}

TEST(RegimeJudge, TheNewSeedsAreJudgedWithoutTheKnownOnes) {
  std::vector<MiniatureRun> runs = MadeUpRegime(0);
  const RegimeVerdicts before = JudgeRuns(runs);
  RunOf(runs, "sparse-1", 1236).loss += 0.01;
  const RegimeVerdicts after = JudgeRuns(runs);
  EXPECT_NE(EstimateOf(before, "primary").readings[0].estimate,
            EstimateOf(after, "primary").readings[0].estimate);
  for (const int reading : {0, 1}) {
    EXPECT_EQ(
        EstimateOf(before, "primary.new_seeds").readings[reading].estimate,
        EstimateOf(after, "primary.new_seeds").readings[reading].estimate);
  }
}

TEST(RegimeJudge, BeyondTheSparseEndsThereIsNoDistance) {
  for (const double active : {0.99, 4.01}) {
    std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
    RunOf(runs, "regime-1", 1240).infer_ae = active;
    const RegimeVerdicts verdicts = JudgeRuns(runs);
    for (const char* id : {"primary", "primary.new_seeds", "row.regime-1"}) {
      EXPECT_EQ(EstimateOf(verdicts, id).status, RegimeStatus::kNotTestable)
          << id;
      EXPECT_TRUE(Says(EstimateOf(verdicts, id).reason,
                       "run gcide/regime-1/seed1240 has",
                       "the sparse rows have 1 to 4: "));
    }
    EXPECT_EQ(EstimateOf(verdicts, "primary.train_ae").status,
              RegimeStatus::kSuperior);
    EXPECT_EQ(EstimateOf(verdicts, "row.regime-2").status,
              RegimeStatus::kSuperior);
  }
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  RunOf(runs, "regime-1", 1240).infer_ae = 4;
  RunOf(runs, "regime-1.5", 1240).infer_ae = 1;
  EXPECT_NE(PrimaryOf(runs), RegimeStatus::kNotTestable);
}

TEST(RegimeJudge, ARunWithoutItsNumberSpoilsWhatItIsIn) {
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  RunOf(runs, "regime-1.5-T1", 1236).loss = NAN;
  RegimeVerdicts verdicts = JudgeRuns(runs);
  EXPECT_EQ(EstimateOf(verdicts, "row.regime-1.5-T1").status,
            RegimeStatus::kNotTestable);
  EXPECT_TRUE(Says(EstimateOf(verdicts, "row.regime-1.5-T1").reason,
                   "run gcide/regime-1.5-T1/seed1236 gave no number"));
  EXPECT_EQ(EstimateOf(verdicts, "primary").status, RegimeStatus::kSuperior);
  RunOf(runs, "sparse-4", 1245).loss = NAN;
  verdicts = JudgeRuns(runs);
  EXPECT_EQ(EstimateOf(verdicts, "primary").status, RegimeStatus::kNotTestable);
  EXPECT_EQ(EstimateOf(verdicts, "row.regime-1.5-quiet").status,
            RegimeStatus::kSuperior);
  EXPECT_TRUE(
      Says(verdicts.controls[0].problem, "sparse-4/seed1245 gave no number"));
  EXPECT_FALSE(verdicts.controls[0].failed);
  // Nor is an infinite number one.
  runs = MadeUpRegime(-0.02);
  RunOf(runs, "regime-1.5-T1", 1236).loss = INFINITY;
  EXPECT_EQ(EstimateOf(JudgeRuns(runs), "row.regime-1.5-T1").reason,
            "run gcide/regime-1.5-T1/seed1236 gave no number");
  // Learned rows without caps: no statement about experts.
  runs = MadeUpRegime(-0.02);
  RunOf(runs, "regime-2", 1236).mean_cap = 0;
  EXPECT_TRUE(Says(JudgeRuns(runs).experts.problem,
                   "regime-2/seed1236 gave no number"));
}

TEST(RegimeJudge, OtherTrainAeIsSaidWhereverTheNumberStands) {
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  auto shift = [&](double train_ae) {
    for (MiniatureRun& run : runs) {
      if (run.row == "regime-1.5") run.train_ae = train_ae;
    }
  };
  for (const double within : {1.24, 1.94}) {
    shift(within);
    EXPECT_EQ(EstimateOf(JudgeRuns(runs), "primary").infer_ae_only.size(), 0u);
  }
  for (const double outside : {1.22, 1.96}) {
    shift(outside);
    const RegimeVerdicts verdicts = JudgeRuns(runs);
    for (const char* id : {"primary", "primary.new_seeds", "primary.train_ae",
                           "row.regime-1.5", "row.regime-1.5.train_ae"}) {
      EXPECT_EQ(EstimateOf(verdicts, id).infer_ae_only,
                std::vector<std::string>{"regime-1.5"})
          << id;
      EXPECT_TRUE(
          Says(DescribeRegime(verdicts), std::string(id) + " (Infer-AE only)"));
      EXPECT_TRUE(
          Says(RegimeMarkdown(verdicts), std::string(id) + " (Infer-AE only)"));
    }
    EXPECT_TRUE(EstimateOf(verdicts, "row.regime-2").infer_ae_only.empty());
    EXPECT_TRUE(Says(RegimeBottomLine(verdicts),
                     "Infer-AE only: while training, "
                     "regime-1.5 has"));
  }
  // A run that diverged does not remove the label.
  RunOf(runs, "regime-1.5", 1236).train_ae = NAN;
  EXPECT_EQ(EstimateOf(JudgeRuns(runs), "primary").infer_ae_only.size(), 1u);
}

TEST(RegimeJudge, EqualBitsUnderTwoSeedsAreNoEvidence) {
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  RunOf(runs, "regime-learned-2", 1236).loss =
      RunOf(runs, "regime-learned-2", 1235).loss;
  RegimeVerdicts verdicts = JudgeRuns(runs);
  EXPECT_EQ(verdicts.equal_seeds,
            std::vector<std::string>{"regime-learned-2: 1235 and 1236"});
  EXPECT_TRUE(Says(DescribeRegime(verdicts),
                   "\nequal bits under two seeds: regime-learned-2: 1235 and "
                   "1236.\n"));
  EXPECT_TRUE(verdicts.mistrusted());
  for (const char* id : {"C1b", "C5.loss", "row.regime-learned-2"}) {
    EXPECT_EQ(EstimateOf(verdicts, id).status, RegimeStatus::kMistrusted) << id;
    EXPECT_TRUE(Says(EstimateOf(verdicts, id).reason, "gave the same bits"));
  }
  EXPECT_EQ(EstimateOf(verdicts, "primary").status, RegimeStatus::kSuperior);
  // A pilot that is a judged run under another seed; and a repeated sparse run.
  runs = MadeUpRegime(-0.02);
  RunOf(runs, "regime-1", 7001).loss = RunOf(runs, "regime-1", 1240).loss;
  EXPECT_EQ(PrimaryOf(runs), RegimeStatus::kMistrusted);
  runs = MadeUpRegime(-0.02);
  RunOf(runs, "sparse-2", 1240).loss = RunOf(runs, "sparse-2", 1241).loss;
  verdicts = JudgeRuns(runs);
  EXPECT_EQ(EstimateOf(verdicts, "primary").status, RegimeStatus::kMistrusted);
  EXPECT_EQ(EstimateOf(verdicts, "C5.loss").status, RegimeStatus::kSuperior);
}

TEST(RegimeJudge, AControlThatFailsMakesThePrimaryMistrusted) {
  // All sparse rows are alike: one more expert gains nothing.
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  for (MiniatureRun& run : runs) {
    if (run.row == "sparse-3")
      run.loss = RunOf(runs, "sparse-2", run.seed).loss;
  }
  RegimeVerdicts verdicts = JudgeRuns(runs);
  EXPECT_TRUE(verdicts.controls[0].failed);
  for (const char* id : {"primary", "primary.new_seeds", "primary.train_ae"}) {
    EXPECT_EQ(EstimateOf(verdicts, id).status, RegimeStatus::kMistrusted) << id;
    EXPECT_TRUE(
        Says(EstimateOf(verdicts, id).reason, "sparse-3, called a soft row"));
  }
  EXPECT_TRUE(verdicts.mistrusted());
  EXPECT_EQ(EstimateOf(verdicts, "row.regime-1").status,
            RegimeStatus::kSuperior);
  EXPECT_TRUE(Says(RegimeBottomLine(verdicts),
                   "These runs are no evidence, because a "
                   "control failed"));
  // The halves differ.
  runs = MadeUpRegime(-0.02);
  for (MiniatureRun& run : runs) {
    if (run.row == "regime-1.5" && run.seed >= 1240) run.loss += 0.02;
  }
  verdicts = JudgeRuns(runs);
  EXPECT_FALSE(verdicts.controls[0].failed);
  EXPECT_TRUE(verdicts.controls[1].failed);
  EXPECT_NEAR(verdicts.controls[1].readings[0].estimate, -0.02, 0.004);
  EXPECT_EQ(EstimateOf(verdicts, "primary").status, RegimeStatus::kMistrusted);
}

TEST(RegimeJudge, WithoutAControlThePrimaryIsNotTestable) {
  // A known seed's sparse loss is in both controls, not in the new seeds.
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  RunOf(runs, "sparse-2", 1235).loss = NAN;
  RegimeVerdicts verdicts = JudgeRuns(runs);
  EXPECT_EQ(EstimateOf(verdicts, "primary.new_seeds").status,
            RegimeStatus::kNotTestable);
  EXPECT_TRUE(Says(EstimateOf(verdicts, "primary.new_seeds").reason,
                   "it could not be checked whether sparse-3, called",
                   "run gcide/sparse-2/seed1235 gave no number"));
  EXPECT_TRUE(Says(DescribeRegime(verdicts), "is found superior: cannot be "));
  // The halves are read at Infer-AE alone.
  runs = MadeUpRegime(-0.02);
  RunOf(runs, "regime-1.5", 1240).infer_ae = 4.5;
  verdicts = JudgeRuns(runs);
  EXPECT_EQ(EstimateOf(verdicts, "primary.train_ae").status,
            RegimeStatus::kNotTestable);
  EXPECT_EQ(EstimateOf(verdicts, "row.regime-2").status,
            RegimeStatus::kSuperior);
  // While runs are missing it may still be asked.
  std::erase_if(runs, [](const MiniatureRun& run) {
    return run.row == "regime-1.5-quiet" && run.seed == 1234;
  });
  verdicts = JudgeRuns(runs);
  EXPECT_EQ(EstimateOf(verdicts, "primary.train_ae").leaning,
            RegimeStatus::kSuperior);
  EXPECT_TRUE(Says(DescribeRegime(verdicts), "not known yet"));
}

TEST(RegimeJudge, ReportsTheErrorOfTheCurveAndFailsNothing) {
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  const RegimeControl before = JudgeRuns(runs).controls[2];
  EXPECT_EQ(before.id, "left_out");
  EXPECT_NEAR(before.readings[0].estimate, 0, 0.004);
  for (MiniatureRun& run : runs) {
    if (run.row == "sparse-2") run.loss += 0.004;
  }
  const RegimeControl after = JudgeRuns(runs).controls[2];
  // The row left out does not affect the curve.
  EXPECT_EQ(after.exponent, before.exponent);
  EXPECT_NEAR(after.readings[0].estimate, before.readings[0].estimate - 0.004,
              1e-12);
  EXPECT_FALSE(after.failed);
}

TEST(RegimeJudge, LearnedRowsAreComparedWithTheirFixedOnes) {
  const RegimeVerdicts verdicts = JudgeRuns(MadeUpRegime(0));
  const RegimeEstimate& both = EstimateOf(verdicts, "C5.loss");
  ASSERT_EQ(both.readings.size(), 1u);
  EXPECT_EQ(both.seeds.size(), 8u);
  // The curve falls from the fixed rows' experts to the learned ones'.
  auto curve = [](double k) { return 0.12 * std::pow(k, -1.5); };
  const double expected =
      -0.02 + (curve(2.05) - curve(1.77)) / 2 + (curve(3.65) - curve(3.37)) / 2;
  EXPECT_NEAR(both.readings[0].estimate, expected, 0.003);
  EXPECT_EQ(both.status, RegimeStatus::kSuperior);
  EXPECT_NEAR(
      (EstimateOf(verdicts, "C5.loss.regime-learned-1.5").readings[0].estimate +
       EstimateOf(verdicts, "C5.loss.regime-learned-2").readings[0].estimate) /
          2,
      both.readings[0].estimate, 1e-14);
  EXPECT_EQ(EstimateOf(verdicts, "C1b").rows.size(), 2u);
  EXPECT_NEAR(EstimateOf(verdicts, "C1b").readings[1].estimate, -0.02, 0.003);
  EXPECT_EQ(verdicts.experts.seeds.size(), 8u);
  EXPECT_NEAR(verdicts.experts.rise.estimate, 0.28, 0.02);
  EXPECT_NEAR(verdicts.experts.caps.estimate, 0.4, 0.01);
}

TEST(RegimeJudge, NothingIsFinalBeforeAllPlannedRuns) {
  for (const char* row : {"regime-1.5-quiet", "sparse-1", "regime-learned-2"}) {
    std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
    std::erase_if(runs, [&](const MiniatureRun& run) {
      return run.row == row && run.seed == 1237;
    });
    const RegimeVerdicts verdicts = JudgeRuns(runs);
    EXPECT_EQ(verdicts.missing,
              std::vector<std::string>{fmt::format("gcide/{}/seed1237", row)});
    for (const RegimeEstimate& each : verdicts.estimates) {
      EXPECT_EQ(each.status, RegimeStatus::kInterim) << each.id;
    }
    EXPECT_EQ(verdicts.estimates.front().leaning, RegimeStatus::kSuperior);
    EXPECT_FALSE(verdicts.mistrusted());
    EXPECT_TRUE(Says(
        RegimeBottomLine(verdicts),
        "INTERIM, 119 of 120 planned runs: so far soft routing ends with"));
    EXPECT_TRUE(Says(DescribeRegime(verdicts), "INTERIM (SUPERIOR so far)"));
  }
  // A pilot counts as planned, too.
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  std::erase_if(runs, [](const MiniatureRun& run) {
    return run.row == "regime-1" && run.seed == 7002;
  });
  EXPECT_EQ(PrimaryOf(runs), RegimeStatus::kInterim);
  // One seed is not enough, and neither is none.
  std::erase_if(runs, [](const MiniatureRun& run) { return run.seed > 1234; });
  const RegimeVerdicts one = JudgeRuns(runs);
  EXPECT_EQ(one.estimates.front().leaning, RegimeStatus::kNotTestable);
  EXPECT_EQ(EstimateOf(one, "row.regime-1.5-quiet").reason,
            "1 seed with all of its rows, and two are needed");
  EXPECT_EQ(JudgeRuns({}).finished, 0);
  EXPECT_TRUE(Says(DescribeRegime(JudgeRuns({})), "0 of 120 planned runs"));
  EXPECT_TRUE(Says(EstimateOf(JudgeRuns({}), "row.regime-1.5-quiet").reason,
                   "0 seeds with all of its rows, and two are needed"));
}

TEST(RegimeJudge, SeedsThatARowLacksAreLeftOut) {
  std::vector<MiniatureRun> runs = MadeUpRegime(-0.02);
  std::erase_if(runs, [](const MiniatureRun& run) {
    return (run.row == "sparse-3" && run.seed == 1240) ||
           (run.row == "regime-2" && run.seed == 1235);
  });
  const RegimeVerdicts verdicts = JudgeRuns(runs);
  EXPECT_EQ(EstimateOf(verdicts, "primary").seeds.size(), 10u);
  EXPECT_EQ(EstimateOf(verdicts, "row.regime-1").seeds.size(), 11u);
  EXPECT_EQ(EstimateOf(verdicts, "C5.loss").seeds.size(), 7u);
  EXPECT_TRUE(
      Says(RegimeMarkdown(verdicts), "| sparse-3 | sparse | 11 of 12 |"));
}

void ExpectNotJudged(const std::function<void(std::vector<MiniatureRun>&)>& by,
                     const std::string& message) {
  std::vector<MiniatureRun> runs = MadeUpRegime(0);
  by(runs);
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { JudgeRuns(runs); }), message));
}

TEST(RegimeJudge, RunsThatAreNotPlannedAreRefused) {
  ExpectNotJudged([](auto& runs) { runs[0].row = "regime-3"; },
                  "run gcide/regime-3/seed1234 is not planned");
  ExpectNotJudged([](auto& runs) { runs[0].seed = 1246; }, "is not planned");
  ExpectNotJudged([](auto& runs) { runs[0].seed = 7001; }, "is not planned");
  ExpectNotJudged([](auto& runs) { runs[0].corpus = "foldoc"; },
                  "run foldoc/sparse-1/seed1234 is not planned");
  ExpectNotJudged(
      [](auto& runs) { RunOf(runs, "regime-1.5-quiet", 1237).seed = 1238; },
      "is not planned");
  ExpectNotJudged([](auto& runs) { runs[0].infer_ae = 2; },
                  "run gcide/sparse-1/seed1234 has 2 active experts, but a "
                  "sparse row has its k, 1");
  ExpectNotJudged([](auto& runs) { runs.push_back(runs[3]); },
                  "run gcide/sparse-1/seed1237 is there twice; leave one out");
  ExpectNotJudged(
      [](auto& runs) { runs.push_back(RunOf(runs, "regime-1", 7001)); },
      "run gcide/regime-1/seed7001 is there twice");
}

TEST(RegimeJudge, ReadingsOfTheBalanceLossAreNotMixed) {
  const auto set_soft = [](std::vector<MiniatureRun>& runs) {
    for (MiniatureRun& run : runs) {
      if (!run.row.starts_with("sparse")) run.load_balance = "soft";
    }
  };
  std::vector<MiniatureRun> runs = MadeUpRegime(0);
  set_soft(runs);
  EXPECT_NO_THROW(JudgeRuns(runs));
  for (const char* row : {"regime-1.5", "regime-learned-2", "sparse-3"}) {
    ExpectNotJudged(
        [&](auto& mixed) {
          set_soft(mixed);
          RunOf(mixed, row, 1236).load_balance = "megatron";
        },
        "the reading 'megatron' of the balance loss");
  }
}

TEST(RegimeJudge, OtherDefinitionsAreRefused) {
  const RegimeDefinitions& regime = FrozenRegime();
  RequireSameRegime(regime, regime.Hash(), "a.h5");
  const std::string message = MessageOf<DataError>(
      [&] { RequireSameRegime(regime, std::string(64, '0'), "a.h5"); });
  EXPECT_TRUE(Says(message, "a.h5 was recorded under other definitions",
                   regime.Hash(), std::string(64, '0')));
  std::vector<MiniatureRun> runs = MadeUpRegime(0);
  EXPECT_TRUE(HasRegimeRuns(regime, runs));
  std::erase_if(runs, [](const MiniatureRun& run) {
    return !run.row.starts_with("sparse");
  });
  EXPECT_FALSE(HasRegimeRuns(regime, runs));
}

// ---- The report.

TEST(RegimeReport, SaysInPlainWordsWhateverCameOut) {
  EXPECT_TRUE(
      Says(RegimeBottomLine(JudgeRuns(MadeUpRegime(-0.02))),
           "Soft routing ends with a lower loss than sparse routing that "
           "activates as many experts. Mean over 3 rows and 12 seeds, 95 % "
           "intervals, nat/token: -0.0"));
  EXPECT_TRUE(
      Says(RegimeBottomLine(JudgeRuns(MadeUpRegime(0.001))),
           "less than 0.01 nat/token behind, and is not shown to be ahead"));
  EXPECT_TRUE(Says(RegimeBottomLine(JudgeRuns(MadeUpRegime(0.0065))),
                   "and it is worse by less than that"));
  EXPECT_TRUE(Says(RegimeBottomLine(JudgeRuns(MadeUpRegime(0.03))),
                   "Soft routing ends with a higher loss"));
  std::vector<MiniatureRun> runs = MadeUpRegime(0);
  double sign = 1;
  for (MiniatureRun& run : runs) {
    if (run.row == "regime-2") run.loss += 0.2 * (sign = -sign);
  }
  EXPECT_TRUE(
      Says(RegimeBottomLine(JudgeRuns(runs)), "These runs do not decide"));
  RunOf(runs, "regime-1", 1240).infer_ae = 4.5;
  EXPECT_TRUE(
      Says(RegimeBottomLine(JudgeRuns(runs)),
           "cannot be tested, because run gcide/regime-1/seed1240 has 4.5"));
}

TEST(RegimeReport, HasEveryEstimateControlAndRemark) {
  const RegimeVerdicts verdicts = JudgeRuns(MadeUpRegime(0.0065));
  const std::string text = DescribeRegime(verdicts);
  const std::string markdown = RegimeMarkdown(verdicts);
  for (const RegimeEstimate& each : verdicts.estimates) {
    EXPECT_TRUE(Says(text, "\n" + each.id + " "));
    EXPECT_TRUE(Says(markdown, "\n| " + each.id + " |"));
  }
  const auto says = [&](const char* id, const std::string& begin) {
    return EstimateOf(verdicts, id).text.starts_with(begin);
  };
  const std::string curve = "loss minus the sparse curve at the run's own ";
  EXPECT_TRUE(says("primary", "mean of 3 rows: " + curve + "Infer-AE"));
  EXPECT_TRUE(says("row.regime-1.train_ae", curve + "Train-AE"));
  EXPECT_TRUE(says("C5.loss", "mean of 2 rows: loss of learned allocation "));
  EXPECT_TRUE(says("C5.loss.regime-learned-2", "loss of learned allocation "));
  for (const RegimeRowRuns& row : verdicts.rows) {
    EXPECT_TRUE(Says(markdown, "\n| " + row.id + " | " + row.role + " |"));
  }
  for (const std::string& each : {text, markdown}) {
    EXPECT_TRUE(Says(each, "MATCHES, and worse", "C3 (experts move early)",
                     "(the quiet row)", "C5.experts: learned rows have +0.2",
                     "sparse-3, called a soft row at 2 experts",
                     "the curve's error"));
  }
  EXPECT_TRUE(Says(text, FrozenRegime().Hash()));
  EXPECT_EQ(text, DescribeRegime(JudgeRuns(MadeUpRegime(0.0065))));
}

TEST(RegimeReport, HasAsJsonWhatIsKnownAndNothingElse) {
  using enum RegimeStatus;
  const RegimeReading one = {0.5, 0.25, {0, 1}}, two = {1, 2, {-1, 3}};
  const std::string of_one =
      R"({"estimate":0.5,"standard_error":0.25,"interval":[0.0,1.0]})";
  const std::string of_two =
      R"({"estimate":1.0,"standard_error":2.0,"interval":[-1.0,3.0]})";
  const std::vector<std::string> xy = {"x", "y"};
  RegimeVerdicts verdicts;
  verdicts.estimates = {
      {"a", "t", xy, kInterim, kNotTestable, "why", xy, {7}, {}, 0, false},
      {"b", "", {}, kInferior, kInferior, "", {}, {}, {one}, 0, true},
      {"c", "", {}, kMatches, kMatches, "", {}, {}, {one, two}, 1.5, false}};
  verdicts.rows = {
      {"x", "primary", 4, 3, 2, 0.5, 1.25, 1.75, 2.5, 0, 0, "", true},
      {"y", "sparse", 1, 0, 0, 0, NAN, NAN, NAN, 0, 0, "no run", false}};
  verdicts.controls = {{"halves", "t", "", true, {one, two}, 0.75, 0},
                       {"left_out", "", "", false, {two}, 0.5, 2},
                       {"other", "", "no seed", false, {}, 0, 0}};
  verdicts.experts = {"", {7}, one, two};
  nlohmann::ordered_json made = RegimeJson(verdicts);
  EXPECT_EQ(made["bottom_line"],
            "Whether soft routing is better than sparse routing cannot be "
            "tested, because why. Infer-AE only: while training, x and y have "
            "other numbers of active experts than the paper's.");
  EXPECT_EQ(made["estimates"].dump(),
            R"([{"estimate":"a","text":"t","rows":["x","y"],)"
            R"("status":"INTERIM","leaning":"NOT_TESTABLE","reason":"why",)"
            R"("infer_ae_only":["x","y"],"seeds":[7]},)"
            R"({"estimate":"b","text":"","rows":[],"status":"INFERIOR",)"
            R"("leaning":"INFERIOR","seeds":[],"worse":true,"difference":)" +
                of_one +
                R"(},{"estimate":"c","text":"","rows":[],"status":"MATCHES",)"
                R"("leaning":"MATCHES","seeds":[],"worse":false,"linear":)" +
                of_one + R"(,"smooth":)" + of_two + R"(,"exponent":1.5}])");
  EXPECT_EQ(made["rows"].dump(),
            R"([{"row":"x","role":"primary","planned":4,"judged":3,)"
            R"("pilots":2,"aim":0.5,"pilot_ae":1.25,"infer_ae":1.75,)"
            R"("train_ae":2.5,"infer_ae_only":true},)"
            R"({"row":"y","role":"sparse","planned":1,"judged":0,"pilots":0,)"
            R"("problem":"no run","infer_ae_only":false}])");
  EXPECT_EQ(made["controls"].dump(),
            R"([{"control":"halves","text":"t","failed":true,)"
            R"("confidence":0.75,"readings":[)" +
                of_one + "," + of_two +
                R"(]},{"control":"left_out","text":"","failed":false,)"
                R"("confidence":0.5,"readings":[)" +
                of_two + R"(],"exponent":2.0},)" +
                R"({"control":"other","text":"","problem":"no seed"}])");
  EXPECT_EQ(made["experts"].dump(), R"({"seeds":[7],"rise":)" + of_one +
                                        R"(,"rise_of_caps":)" + of_two + "}");
  EXPECT_EQ(made["stays_impossible"].size(), 6u);
  verdicts.experts.problem = "why";
  EXPECT_EQ(RegimeJson(verdicts)["experts"].dump(), R"({"problem":"why"})");
}

TEST(RegimeReport, CapsExplainARiseOnlyIfTheyRiseAsMuch) {
  // Whether the text says that caps are larger, so that the rise is no sign.
  const auto explained = [](double caps) {  // those of fixed rows are 3
    std::vector<MiniatureRun> runs = MadeUpRegime(0);
    for (MiniatureRun& run : runs) {
      if (run.row.starts_with("regime-learned")) run.mean_cap = caps;
    }
    const std::string text = DescribeRegime(JudgeRuns(runs));
    EXPECT_TRUE(Says(text, "C5.experts: learned rows have +0.2"));
    return Says(text, "larger") && Says(text, "sign");
  };
  EXPECT_TRUE(explained(3.4));
  EXPECT_FALSE(explained(3.1));
  EXPECT_FALSE(explained(2.9));
}

TEST(RegimeReport, SaysThatTheSparseLossesDoNotFixTheCurve) {
  std::vector<MiniatureRun> runs = MadeUpRegime(0);
  EXPECT_FALSE(Says(DescribeRegime(JudgeRuns(runs)), "end of its range"));
  // Losses that fall ever faster fit no such curve.
  for (MiniatureRun& run : runs) {
    if (run.row == "sparse-4") run.loss -= 1;
  }
  EXPECT_TRUE(Says(DescribeRegime(JudgeRuns(runs)),
                   "p is at an end of its range, 0.1 to 10"));
}

// ---- The independent program.

// Losses near 4 are fitted and subtracted a few dozen at a time: errors of
// about 1e-14. p, where a slope changes sign, is known to 1e-9 relative, which
// moves a distance by at most 1e-10 relative; the file has 13 digits.
constexpr double kNear = 1e-10;

void ExpectReading(const RegimeReading& ours, const json& oracle) {
  EXPECT_NEAR(ours.estimate, oracle.at("estimate"), kNear);
  EXPECT_NEAR(ours.error, oracle.at("error"), kNear);
  EXPECT_NEAR(ours.interval.low, oracle.at("low"), kNear);
  EXPECT_NEAR(ours.interval.high, oracle.at("high"), kNear);
}

void ExpectReadings(const std::vector<RegimeReading>& ours,
                    const json& oracle) {
  ASSERT_EQ(ours.size(), oracle.size());
  for (size_t i = 0; i < ours.size(); ++i) ExpectReading(ours[i], oracle[i]);
}

void ExpectExponent(double ours, const json& oracle) {
  const double theirs = oracle.value("exponent", 0.0);
  EXPECT_NEAR(ours, theirs, 1e-6 * theirs);
}

std::vector<MiniatureRun> RunsOf(const json& record) {
  std::vector<MiniatureRun> runs;
  for (const json& made : record.at("runs")) {
    MiniatureRun run;
    run.row = made.at("row");
    run.corpus = made.at("corpus");
    run.seed = made.at("seed");
    const auto number = [&](const char* name) {
      return made.at(name).is_null() ? NAN : made.at(name).get<double>();
    };
    run.loss = number("loss");
    run.infer_ae = number("infer_ae");
    run.train_ae = number("train_ae");
    run.mean_cap = number("mean_cap");
    runs.push_back(run);
  }
  return runs;
}

void CompareEstimate(const RegimeEstimate& ours, const json& oracle,
                     bool interim) {
  SCOPED_TRACE(ours.id);
  EXPECT_EQ(ours.id, oracle.at("id"));
  EXPECT_EQ(RegimeStatusName(ours.leaning), oracle.at("leaning"))
      << ours.reason;
  EXPECT_EQ(ours.status, interim ? RegimeStatus::kInterim : ours.leaning);
  EXPECT_EQ(ours.infer_ae_only,
            oracle.at("infer_ae_only").get<std::vector<std::string>>());
  if (oracle.contains("problem")) {
    EXPECT_TRUE(ours.readings.empty());
    return;
  }
  EXPECT_EQ(ours.seeds, oracle.at("seeds").get<std::vector<int64_t>>());
  EXPECT_EQ(ours.worse, oracle.at("worse").get<bool>());
  ExpectReadings(ours.readings, oracle.at("readings"));
  ExpectExponent(ours.exponent, oracle);
}

TEST(RegimeOracle, JudgesEveryMadeUpRecordAlike) {
  const json records =
      json::parse(ReadWholeFile(RunfilePath("golden/oracles/regime.json")))
          .at("records");
  ASSERT_EQ(records.size(), 28u);
  for (const json& record : records) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const RegimeVerdicts ours = JudgeRuns(RunsOf(record));
    ASSERT_EQ(ours.estimates.size(), record.at("estimates").size());
    for (size_t i = 0; i < ours.estimates.size(); ++i) {
      CompareEstimate(ours.estimates[i], record["estimates"][i],
                      record.at("interim"));
    }
    ASSERT_EQ(ours.controls.size(), record.at("controls").size());
    for (size_t i = 0; i < ours.controls.size(); ++i) {
      const json& oracle = record["controls"][i];
      SCOPED_TRACE(ours.controls[i].id);
      EXPECT_EQ(ours.controls[i].id, oracle.at("id"));
      ASSERT_EQ(ours.controls[i].problem.empty(), !oracle.contains("problem"))
          << ours.controls[i].problem;
      if (oracle.contains("problem")) continue;
      EXPECT_EQ(ours.controls[i].failed, oracle.at("failed").get<bool>());
      ExpectReadings(ours.controls[i].readings, oracle.at("readings"));
      ExpectExponent(ours.controls[i].exponent, oracle);
    }
    const json& experts = record.at("experts");
    ASSERT_EQ(ours.experts.problem.empty(), !experts.contains("problem"));
    if (experts.contains("problem")) continue;
    EXPECT_EQ(ours.experts.seeds,
              experts.at("seeds").get<std::vector<int64_t>>());
    ExpectReading(ours.experts.rise, experts.at("rise"));
    ExpectReading(ours.experts.caps, experts.at("caps"));
  }
}

}  // namespace
}  // namespace softmoe::golden
