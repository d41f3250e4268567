// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/message_test_util.h"
#include "golden/testing/miniature_test_util.h"

namespace softmoe::golden {
namespace {

MiniatureResults Results() {
  return MadeUpResults(FrozenClaims(), [](size_t, MiniatureRun* run) {
    // C7 on its margin, to within 0.0002.
    if (run->row.find("jitter") != std::string::npos) run->loss -= 0.0398;
  });
}

TEST(DescribeMiniature, SaysWhatWasFoundAndThatItIsNoReproduction) {
  const MiniatureClaims& claims = FrozenClaims();
  const std::string text = DescribeMiniature(JudgeMiniature(claims, Results()));
  EXPECT_TRUE(Says(text, "No reproduction of the paper,\nwhatever the verdicts",
                   "margins  " + claims.Hash() +
                       ", procedure 2, not known to be fixed before these "
                       "runs\n"));
  // The text begins with what could have been shown.
  EXPECT_TRUE(
      Says(text, "\n\nclaim  could it be shown  why not",
           "\nC6     no                 C6.hellaswag: foldoc: there are "
           "no accuracies; gcide:",
           "\nC7     yes\n"));
  EXPECT_LT(text.find("could it be shown"), text.find("SHOWN"));
  EXPECT_TRUE(Says(text,
                   "Hypotheses of this project, which are no sentences of the "
                   "paper:\nhypothesis  verdict"));
  EXPECT_EQ(text.find("after the fact"), std::string::npos);
  EXPECT_TRUE(Says(text, "runs     76 of 76 planned\n",
                   "C1a    SHOWN         SoftMoE* has the lower loss in all "
                   "configurations\n",
                   "C6     NOT_TESTABLE  Soft routing is ahead on HellaSwag\n",
                   "C7     UNDECIDED     Jitter does not help",
                   "C7.jitter, final loss with input jitter 0.05 minus that "
                   "without: 3 of 3 cases point to the claim",
                   "H2 assumes: one idle machine; the soft router throughout"));
  EXPECT_TRUE(
      Says(MeasureOf(JudgeMiniature(claims, Results()), "H2.throughput").reason,
           "there is no benchmark"));
  // The case to which the effect belongs, and the rows and seeds of a corpus.
  EXPECT_TRUE(
      Says(text, "  seeds needed  deciding case\n", "gcide      9      4"));
  EXPECT_EQ(text.find("leaves out"), std::string::npos);
  EXPECT_EQ(text.find("missing"), std::string::npos);
  // The text is the same each time.
  EXPECT_EQ(text, DescribeMiniature(JudgeMiniature(claims, Results())));
}

TEST(DescribeMiniature, NamesMissingRunsAndWhatVerdictsLeanTo) {
  const MiniatureClaims& claims = FrozenClaims();
  MiniatureResults results = Results();
  results.runs.resize(results.runs.size() - 12);
  const MiniatureVerdicts verdicts = JudgeMiniature(claims, results);
  const std::string text = DescribeMiniature(verdicts);
  EXPECT_TRUE(Says(text, "runs     64 of 76 planned\n",
                   "missing: gcide/sparse-1-jitter-0.05/seed1234",
                   "and 6 more\n", "C1a    INTERIM (SHOWN so far)"));
  EXPECT_EQ(MeasureOf(verdicts, "C7.jitter").reason,
            "gcide: sparse-1-jitter-0.05 has fewer than two runs; gcide: "
            "sparse-2-jitter-0.05 has fewer than two runs; and 1 more reason");
  // No measure has a verdict yet, either.
  EXPECT_TRUE(Says(text, "measure        so far "));
}

// Includes rows that enter no claim.
TEST(DescribeMiniature, NamesSeedsWithEqualBits) {
  MiniatureResults results = Results();
  double first = 0;
  for (MiniatureRun& run : results.runs) {
    if (run.row != "softmoe-2-paper-tau") continue;
    if (run.seed == 1234) first = run.loss;
    run.loss = first;
  }
  const std::string text =
      DescribeMiniature(JudgeMiniature(FrozenClaims(), results));
  EXPECT_TRUE(
      Says(text,
           "equal bits under two seeds: gcide/softmoe-2-paper-tau: 1234 and "
           "1235\n",
           "C1a    SHOWN "));
}

// Two claims with every kind of measure and case, in binary fractions.
MiniatureVerdicts WholeMiniature() {
  MiniatureCase holds;
  holds.label = "a - b";
  holds.corpus = "gcide";
  holds.seeds = 4;
  holds.estimate = -0.125;
  holds.seed_error = 0.03125;
  holds.least_error = 0.0625;
  holds.freedom = 24;
  holds.interval = {-0.25, 0.0009765625};
  holds.resolves = 0.3125;
  holds.p_shown = 0.0078125;
  holds.p_contradicted = 0.9921875;
  MiniatureCase own = holds;
  own.label = "c - b";
  own.corpus = "foldoc";
  own.seeds = 2;
  own.seed_error = 0.5;
  own.own_deviation = {"c", "b"};
  MiniatureCase problem;
  problem.label = "d";
  problem.corpus = "gcide";
  problem.seeds = 1;
  problem.problem = "has one run";
  MiniatureCase benchmark;
  benchmark.label = "1 - 1.5";
  benchmark.seeds = 3;
  benchmark.estimate = 0.5;
  benchmark.seed_error = 0.25;
  benchmark.freedom = 4.5;
  benchmark.interval = {0.25, 0.75};
  benchmark.resolves = 1.5;
  benchmark.p_shown = 0.25;
  benchmark.p_contradicted = 0.5;
  auto measure = [](const char* id, MiniatureStatus status,
                    std::vector<MiniatureCase> cases, size_t deciding) {
    MiniatureMeasureVerdict verdict;
    verdict.id = id;
    verdict.text = std::string("text of ") + id;
    verdict.unit = "nat/token";
    verdict.margin = -0.03125;
    verdict.status = status;
    verdict.cases_needed = static_cast<int64_t>(cases.size());
    verdict.cases = std::move(cases);
    verdict.deciding = deciding;
    verdict.p = 0.015625;
    verdict.reason = "reason of";
    for (int i = 0; i < 12; ++i) verdict.reason += " " + verdict.id;
    return verdict;
  };
  MiniatureVerdicts verdicts;
  verdicts.hash = "c0ffee";
  verdicts.planned = 12;
  verdicts.finished = 5;
  verdicts.missing = {"g/a/1", "g/a/2", "g/a/3", "g/a/4",
                      "g/a/5", "g/a/6", "g/a/7"};
  verdicts.equal_seeds = {"gcide/a: 1 and 2", "gcide/b: 1 and 3"};
  MiniatureVerdict first = {"C1",
                            "A title",
                            /*of_paper=*/true,
                            MiniatureStatus::kInterim,
                            MiniatureStatus::kShown,
                            "an assumption",
                            {}};
  first.measures = {
      measure("C1.one", MiniatureStatus::kShown, {holds, own, problem}, 0),
      measure("C1.two", MiniatureStatus::kNotTestable, {holds, problem}, 1)};
  MiniatureVerdict second = {"H2",
                             "Another title",
                             /*of_paper=*/false,
                             MiniatureStatus::kUndecided,
                             MiniatureStatus::kUndecided,
                             "much",
                             {}};
  second.measures = {
      measure("H2.far", MiniatureStatus::kUndecided, {benchmark}, 0),
      measure("H2.near", MiniatureStatus::kUndecided, {own, holds}, 1)};
  second.measures[1].seeds_needed = 7;
  for (MiniatureVerdict* claim : {&first, &second}) {
    for (MiniatureMeasureVerdict& each : claim->measures) {
      each.could_be_shown = each.id != "C1.two";
    }
  }
  // The mean of two parts, and what is only reported.
  MiniatureCase part = own;
  part.left_out = {"c", "e"};
  part.cap_rise = -0.25;
  MiniatureCase mean = holds;
  mean.label = "mean of 2";
  mean.bartlett = 0.00390625;
  mean.not_pooled = true;
  mean.own_error = 0.03125;
  mean.own_freedom = 3;
  mean.left_out = {"c"};
  mean.cap_rise = -0.1875;
  first.measures.push_back(
      measure("C1.mean", MiniatureStatus::kShown, {mean}, 0));
  first.measures.back().could_be_shown = true;
  first.measures.back().parts = {part};
  first.measures.back().p_not_pooled = 0.0625;
  first.measures.push_back(
      measure("C1.told", MiniatureStatus::kReported, {holds}, 0));
  verdicts.claims = {first, second};
  EarlierClaims earlier;
  earlier.hash = "deca";
  earlier.procedure = 1;
  earlier.frozen = "long ago";
  earlier.why = "a look at it";
  earlier.verdicts = {{"C7", "CONTRADICTED", {"C1", "C3"}, "it was strict"}};
  verdicts.recorded_under = earlier;
  verdicts.resolution = {{.corpus = "gcide",
                          .rows = 9,
                          .seeds = 4,
                          .plain = 0.0625,
                          .paired = 0.03125,
                          .paired_freedom = 24,
                          .plain_own = {"c"},
                          .paired_own = {"c", "d"},
                          .one_test = 0.125,
                          .family = 0.25},
                         {.corpus = "foldoc",
                          .rows = 3,
                          .seeds = 2,
                          .plain = 0.5,
                          .paired = 1,
                          .paired_freedom = 2,
                          .plain_own = {},
                          .paired_own = {},
                          .one_test = 0.00390625,
                          .family = 1}};
  return verdicts;
}

TEST(DescribeMiniature, WritesEverything) {
  EXPECT_TRUE(EqualsFile(DescribeMiniature(WholeMiniature()),
                         "golden/verdict/testdata/miniature.txt"));
}

TEST(MiniatureMarkdown, WritesEveryMeasureOfEveryClaim) {
  EXPECT_TRUE(EqualsFile(MiniatureMarkdown(WholeMiniature()),
                         "golden/verdict/testdata/miniature_markdown.txt"));
}

TEST(DescribeMiniature, SixMissingRunsAreAllNamed) {
  MiniatureVerdicts verdicts = WholeMiniature();
  verdicts.missing.pop_back();
  const std::string text = DescribeMiniature(verdicts);
  EXPECT_TRUE(Says(
      text, "missing: g/a/1 g/a/2 g/a/3 g/a/4 g/a/5 g/a/6\nequal bits under"));
}

TEST(MiniatureCaseTable, SaysEverything) {
  EXPECT_EQ(
      MiniatureCaseTable(WholeMiniature()).Text(),
      R"(measure         corpus  case       effect   from         to  seeds  p holds  p reversed  remarks
--------------  ------  ---------  ------  -----  ---------  -----  -------  ----------  ------------------------------------------------------------------------------------------------------------------------------------------------
C1.one          gcide   a - b      -0.125  -0.25  +0.000977      4   0.0078        0.99
C1.one          foldoc  c - b      -0.125  -0.25  +0.000977      2   0.0078        0.99  own deviation: c, b
C1.one          gcide   d               -      -          -      -        -           -  has one run
C1.two          gcide   a - b      -0.125  -0.25  +0.000977      4   0.0078        0.99
C1.two          gcide   d               -      -          -      -        -           -  has one run
C1.mean         gcide   mean of 2  -0.125  -0.25  +0.000977      4   0.0078        0.99  own deviation, for the rows scatter unequally (Bartlett, p = 0.0039); left out of the pool: c; rounding of caps alone: -0.19, 1.50 of the effect
C1.mean (part)  foldoc  c - b      -0.125  -0.25  +0.000977      2   0.0078        0.99  own deviation: c, b; left out of the pool: e; rounding of caps alone: -0.25, 2.00 of the effect
C1.told         gcide   a - b      -0.125  -0.25  +0.000977      4   0.0078        0.99
H2.far                  1 - 1.5      +0.5  +0.25      +0.75      3     0.25         0.5
H2.near         foldoc  c - b      -0.125  -0.25  +0.000977      2   0.0078        0.99  own deviation: c, b
H2.near         gcide   a - b      -0.125  -0.25  +0.000977      4   0.0078        0.99
)");
}

TEST(DescribeMiniatureRows, WritesMeansAndDeviationsOverTheirSeeds) {
  MiniatureClaims claims;
  claims.planned = {{{"a", "b", "c"}, "gcide", {1, 2, 3}},
                    {{"a"}, "foldoc", {1, 2}}};
  MiniatureMeasure measure;
  measure.pooled = {"a"};
  claims.claims.emplace_back().measures = {measure};
  MiniatureResults results;
  auto add = [&](const char* row, const char* corpus, int64_t seed,
                 double loss) {
    MiniatureRun run;
    run.row = row;
    run.corpus = corpus;
    run.seed = seed;
    run.loss = loss;
    run.infer_ae = 2 * loss;
    run.train_ae = 3;
    run.load_variance = loss / 1024;
    results.runs.push_back(run);
  };
  add("a", "gcide", 1, 2.5);
  add("a", "foldoc", 1, 8);
  add("c", "gcide", 1, 1.25);
  add("a", "gcide", 2, 3.5);
  add("a", "gcide", 3, 3);
  add("b", "gcide", 1, NAN);  // diverged
  add("a", "foldoc", 2, NAN);
  EXPECT_EQ(
      DescribeMiniatureRows(claims, results),
      R"(corpus  row  seeds  loss (deviation)  infer-AE (deviation)  train-AE (deviation)  load variance (deviation)  remarks
------  ---  -----  ----------------  --------------------  --------------------  -------------------------  ----------------------------
gcide   a        3           3 (0.5)                 6 (1)                 3 (0)        0.0029297 (0.00049)
gcide   b        1                 -                     -                     3                          -  not judged; 1 gave no number
gcide   c        1              1.25                   2.5                     3                  0.0012207  not judged
foldoc  a        2                 8                    16                 3 (0)                  0.0078125  1 gave no number
)");
}

TEST(MiniatureJson, WritesEverything) {
  EXPECT_TRUE(EqualsFile(MiniatureJson(WholeMiniature()).dump(2) + "\n",
                         "golden/verdict/testdata/miniature.json"));
}

}  // namespace
}  // namespace softmoe::golden
