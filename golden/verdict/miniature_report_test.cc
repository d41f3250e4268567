// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden/testing/miniature_test_util.h"

namespace softmoe::golden {
namespace {

void ExpectHas(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

MiniatureResults Results() {
  return MadeUpResults(FrozenClaims(), [](size_t, MiniatureRun* run) {
    // C7 on its margin, to within 0.0002.
    if (run->row.find("jitter") != std::string::npos) run->loss -= 0.0398;
  });
}

TEST(DescribeMiniature, SaysWhatWasFoundAndThatItIsNoReproduction) {
  const MiniatureClaims& claims = FrozenClaims();
  const std::string text = DescribeMiniature(JudgeMiniature(claims, Results()));
  ExpectHas(text, "No reproduction of the paper,\nwhatever the verdicts");
  ExpectHas(text, "margins  " + claims.Hash() + ", fixed before any run\n");
  ExpectHas(text, "runs     76 of 76 planned\n");
  ExpectHas(text, "C1     SHOWN         Soft routing beats sparse\n");
  ExpectHas(text, "C6     NOT_TESTABLE  Soft routing is ahead on HellaSwag\n");
  ExpectHas(text, "C7     UNDECIDED     Jitter does not help");
  ExpectHas(text,
            "C7.jitter, final loss with input jitter 0.05 minus that "
            "without: 3 of 3 cases point to the claim");
  ExpectHas(text,
            "C9 assumes: one idle machine; sparse routing at 1, 2, 3 and "
            "4 experts, fixed random");
  // Whose effect it is, and of how many seeds.
  ExpectHas(text, "  seeds needed  deciding case\n");
  ExpectHas(text, "gcide      9      4");
  EXPECT_EQ(text.find("leaves out"), std::string::npos);
  EXPECT_EQ(text.find("missing"), std::string::npos);
  // The text is the same each time.
  EXPECT_EQ(text, DescribeMiniature(JudgeMiniature(claims, Results())));
}

TEST(DescribeMiniature, NamesMissingRunsAndWhatVerdictsLeanTo) {
  const MiniatureClaims& claims = FrozenClaims();
  MiniatureResults results = Results();
  results.runs.resize(results.runs.size() - 12);
  const std::string text = DescribeMiniature(JudgeMiniature(claims, results));
  ExpectHas(text, "runs     64 of 76 planned\n");
  ExpectHas(text, "missing: gcide/sparse-1-jitter-0.05/1234");
  ExpectHas(text, "and 6 more\n");
  ExpectHas(text, "C1     INTERIM (SHOWN so far)");
}

// Also of a row that enters no claim.
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
  ExpectHas(text,
            "equal bits under two seeds: gcide/softmoe-2-paper-tau: 1234 and "
            "1235\n");
  ExpectHas(text, "C1     SHOWN ");
}

TEST(DescribeMiniature, NamesRowsOutsideThePooledDeviations) {
  MiniatureVerdicts verdicts = JudgeMiniature(FrozenClaims(), Results());
  verdicts.resolution[0].plain_own = {"sparse-2"};
  verdicts.resolution[1].paired_own = {"sparse-3", "softmoe-2-calibrated"};
  const std::string text = DescribeMiniature(verdicts);
  ExpectHas(text,
            "\ngcide: \"deviation\" leaves out rows much noisier than the "
            "others: sparse-2\n"
            "foldoc: \"paired\" leaves out rows much noisier than the others: "
            "sparse-3, softmoe-2-calibrated\n");
  const nlohmann::json json = nlohmann::json::parse(MiniatureJson(verdicts));
  const auto& resolution = json["resolution"];
  EXPECT_EQ(resolution[0]["own_deviation"], verdicts.resolution[0].plain_own);
  EXPECT_FALSE(resolution[0].contains("own_paired_deviation"));
  EXPECT_EQ(resolution[1]["own_paired_deviation"],
            verdicts.resolution[1].paired_own);
}

TEST(DescribeMiniature, CasesAndRowsAreAllThere) {
  const MiniatureClaims& claims = FrozenClaims();
  const std::string cases =
      DescribeMiniatureCases(JudgeMiniature(claims, Results()));
  ExpectHas(cases, "softmoe-star-1.5-calibrated - sparse-2");
  ExpectHas(cases, "there are no accuracies");
  ExpectHas(cases, "there is no benchmark");
  const std::string rows = DescribeMiniatureRows(claims, Results());
  // In no claim, but shown.
  ExpectHas(rows, "softmoe-2-paper-tau");
  ExpectHas(rows, "gcide   sparse-1 ");
}

TEST(MiniatureJson, HasEveryNumberOfTheText) {
  const MiniatureClaims& claims = FrozenClaims();
  const MiniatureVerdicts verdicts = JudgeMiniature(claims, Results());
  const nlohmann::json json = nlohmann::json::parse(MiniatureJson(verdicts));
  EXPECT_EQ(json["hash"], claims.Hash());
  EXPECT_EQ(json["claims"].size(), 9u);
  const auto& group = json["claims"][0]["measures"][0];
  EXPECT_EQ(group["measure"], "C1.group");
  EXPECT_EQ(group["status"], "SHOWN");
  EXPECT_EQ(group["cases"].size(), 10u);
  const MiniatureCase& first = MeasureOf(verdicts, "C1.group").cases[0];
  EXPECT_EQ(group["cases"][0]["effect"], first.estimate);
  EXPECT_EQ(group["cases"][0]["interval"][0], first.interval.low);
  EXPECT_FALSE(group.contains("seeds_needed"));
  const auto& jitter = json["claims"][6]["measures"][0];
  EXPECT_EQ(jitter["status"], "UNDECIDED");
  EXPECT_EQ(jitter["seeds_needed"],
            *MeasureOf(verdicts, "C7.jitter").seeds_needed);
  EXPECT_EQ(json["resolution"].size(), 2u);
}

}  // namespace
}  // namespace softmoe::golden
