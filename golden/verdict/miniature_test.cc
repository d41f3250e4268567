// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/miniature_quantity.h"

namespace softmoe::golden {
namespace {

const MiniatureMeasure& Measure(const MiniatureClaims& claims,
                                const std::string& id) {
  for (const MiniatureClaim& claim : claims.claims) {
    for (const MiniatureMeasure& measure : claim.measures) {
      if (measure.id == id) return measure;
    }
  }
  throw InternalError("no measure " + id);
}

std::string FileText() {
  return ReadWholeFile(RunfilePath("golden/paper/miniature.toml"));
}

// The file with the first occurrence of `from` replaced.
std::string Changed(const std::string& from, const std::string& to) {
  return Replaced(FileText(), from, to);
}

TEST(MiniatureClaims, TwelveMeasuresOfClaimsAndHypothesesOnSeventySixRuns) {
  const MiniatureClaims claims = LoadMiniatureClaims();
  EXPECT_EQ(claims.level, 0.05);
  EXPECT_EQ(claims.num_measures(), 12);
  std::string ids;
  for (const MiniatureClaim& claim : claims.claims) {
    ids += claim.id + " ";
    EXPECT_EQ(claim.of_paper, claim.id[0] == 'C') << claim.id;
  }
  EXPECT_EQ(ids, "C1a C1b C2 C3 C4 C5 C6 C7 H1 H2 ");
  // The order of layers is reported, outside the family.
  EXPECT_FALSE(Measure(claims, "C2.order").judged());
  EXPECT_TRUE(claims.Uses("sparse-4"));
  EXPECT_FALSE(claims.Uses("softmoe-2-paper-tau"));
  size_t runs = 0;
  for (const PlannedRuns& planned : claims.planned) {
    runs += planned.rows.size() * planned.seeds.size();
  }
  EXPECT_EQ(runs, 76u);  // 54 + 10 + 12
  EXPECT_EQ(claims.PlannedSeeds("softmoe-2-calibrated", "gcide")->size(), 4u);
  EXPECT_EQ(claims.PlannedSeeds("softmoe-2-calibrated", "foldoc")->size(), 2u);
  EXPECT_EQ(claims.PlannedSeeds("softmoe-2-paper-tau", "gcide")->size(), 2u);
  EXPECT_EQ(claims.PlannedSeeds("softmoe-2-paper-tau", "foldoc"), nullptr);
  EXPECT_EQ(claims.PlannedSeeds("sparse-3-jitter-0.05", "gcide")->size(), 4u);
}

TEST(MiniatureClaims, MarginsAndSharesAreThoseOfTheDesign) {
  const MiniatureClaims claims = LoadMiniatureClaims();
  EXPECT_EQ(Measure(claims, "C2.share").share_of_layers, 0.3);
  EXPECT_EQ(Measure(claims, "C3.early").share_of_steps, 0.15);
  EXPECT_EQ(Measure(claims, "C3.early").margin, 0.5);
  EXPECT_EQ(Measure(claims, "C4.balance").margin, std::log(2.0));
  EXPECT_EQ(Measure(claims, "C7.jitter").margin, -0.03);
  for (const char* id :
       {"C1a.group", "C1a.curve", "C2.share", "C2.order", "C5.loss",
        "C5.experts", "C6.hellaswag", "H1.halving", "H2.throughput"}) {
    EXPECT_EQ(Measure(claims, id).margin, 0) << id;
  }
  EXPECT_EQ(Measure(claims, "C1b.curve").margin, 0.01);
  EXPECT_EQ(Measure(claims, "C3.early").final_share, 0.5);
  EXPECT_EQ(Measure(claims, "C3.early").share_of_movement, 0.5);
}

// The paper's words decide: "across all configurations" means every,
// "typically" and "in most cases" most, a summary without such a word the mean.
TEST(MiniatureClaims, QuantifiersAreThePapersWords) {
  const MiniatureClaims claims = LoadMiniatureClaims();
  for (const char* id : {"C1a.group", "C1a.curve", "C1b.curve", "C2.share",
                         "C6.hellaswag", "H1.halving", "H2.throughput"}) {
    EXPECT_EQ(Measure(claims, id).of_cases, OfCases::kEvery) << id;
  }
  for (const char* id : {"C3.early", "C5.loss", "C7.jitter"}) {
    EXPECT_EQ(Measure(claims, id).of_cases, OfCases::kMost) << id;
  }
  for (const char* id : {"C4.balance", "C5.experts"}) {
    EXPECT_EQ(Measure(claims, id).of_cases, OfCases::kMean) << id;
  }
  EXPECT_EQ(Measure(claims, "C2.order").of_cases, OfCases::kNone);
  // SoftMoE* is the fixed allocation, SoftMoE the learned one.
  EXPECT_EQ(Measure(claims, "C1a.curve").rows.size(), 3u);
  EXPECT_EQ(Measure(claims, "C1b.curve").rows,
            (std::vector<std::string>{"softmoe-1.5-calibrated",
                                      "softmoe-2-calibrated"}));
}

TEST(MiniatureClaims, MostIsMoreThanHalfAndEveryIsAll) {
  EXPECT_EQ(CasesNeeded(OfCases::kEvery, 4), 4);
  EXPECT_EQ(CasesNeeded(OfCases::kMost, 1), 1);
  EXPECT_EQ(CasesNeeded(OfCases::kMost, 2), 2);
  EXPECT_EQ(CasesNeeded(OfCases::kMost, 3), 2);
  EXPECT_EQ(CasesNeeded(OfCases::kMost, 4), 3);
  EXPECT_EQ(CasesNeeded(OfCases::kMean, 1), 1);
  EXPECT_EQ(CasesNeeded(OfCases::kNone, 4), 0);
}

// Four layers share eight experts, at least one in each whatever the logits, so
// the late two have between a quarter and three quarters.
TEST(LearningRateNeeded, IsInfiniteWhereNoLogitsGiveTheFinalShare) {
  MiniatureRun run;
  run.allocation.emplace_back().allocation = {1, 1, 3, 3};
  MiniatureMeasure measure;
  measure.share_of_layers = 0.5;
  measure.share_of_movement = 0.5;
  const auto needed = [&](double final_share) {
    measure.final_share = final_share;
    return LearningRateNeeded(measure, run);
  };
  EXPECT_EQ(needed(0.5), 0);
  // Half of the way from 0.25 to a softmax of 0.35 against 0.15.
  EXPECT_NEAR(needed(0.6), std::log(0.3 / 0.2) / 2, 1e-12);
  for (const double share : {0.1, 0.25, 0.75, 0.9}) {
    EXPECT_EQ(needed(share), HUGE_VAL) << share;
  }
}

// Another hash refuses all earlier results, unless this one goes into the
// history.
TEST(MiniatureClaims, HashIsTheFrozenOne) {
  EXPECT_EQ(LoadMiniatureClaims().Hash(),
            "5787bb7056f5578c23f4dd793736b35dad8c9dbc36717b638097e11e6cbaab12");
}

TEST(MiniatureClaims, HistoryHasProcedure1AndWhatBecameOfItsClaims) {
  const MiniatureClaims claims = LoadMiniatureClaims();
  ASSERT_EQ(claims.history.size(), 1u);
  const EarlierClaims& first = claims.history[0];
  EXPECT_EQ(first.hash,
            "f40f63b96e499623cb50f40f0e5ead2d8c412f7584ef1218cfd2de19a16cbe00");
  EXPECT_EQ(first.procedure, 1);
  EXPECT_EQ(first.verdicts.size(), 9u);
  // Every present claim has its predecessor, and no other claim has one.
  size_t continued = 0;
  for (const EarlierVerdict& earlier : first.verdicts) {
    continued += earlier.now.size();
  }
  EXPECT_EQ(continued, claims.claims.size());
  for (const MiniatureClaim& claim : claims.claims) {
    EXPECT_NE(first.Before(claim.id), nullptr) << claim.id;
  }
}

TEST(MiniatureClaims, HashCoversWhatDecidesAndNothingElse) {
  const std::string frozen = LoadMiniatureClaims().Hash();
  auto hash = [](const std::string& from, const std::string& to) {
    return ParseMiniatureClaims(Changed(from, to), "changed").Hash();
  };
  EXPECT_EQ(hash("# The runs that must be in", "# All runs"), frozen);
  EXPECT_EQ(hash("Later layers get more", "Another title"), frozen);
  EXPECT_EQ(hash("softmoe.tex:539", "softmoe.tex:540"), frozen);
  EXPECT_EQ(hash("text = \"share of the last", "text = \"part of the last"),
            frozen);
  EXPECT_EQ(hash("why = \"judged as before\"", "why = \"as it was\""), frozen);
  EXPECT_EQ(hash("frozen = \"2026-11-22", "frozen = \"2026-11-23"), frozen);
  const std::pair<std::string, std::string> deciding[] = {
      {"level = 0.05", "level = 0.06"},
      {"confidence = 0.95", "confidence = 0.9"},
      {"own_deviation = 3", "own_deviation = 4"},
      {"own_deviation_rows = 0.34", "own_deviation_rows = 0.5"},
      {"\"foldoc\"\nseeds = [1234, 1235]", "\"foldoc\"\nseeds = [1234, 1236]"},
      {"margin = -0.03", "margin = -0.04"},
      {"margin = 0.5", "margin = 0.4"},
      {"margin = 0.6931471805599453", "margin = 0.7"},
      {"of_cases = \"most\"", "of_cases = \"every\""},
      {"noise = \"paired\"", "noise = \"plain\""},
      {"holds = \"within\"", "holds = \"below\""},
      {"quantity = \"late_share\"\nunit = \"1\"\nrows = [\"learned\"]",
       "quantity = \"late_share\"\nunit = \"1\"\n"
       "rows = [\"softmoe-2-calibrated\"]"},
      {"corpora = [\"gcide\", \"foldoc\"]", "corpora = [\"gcide\"]"},
      {"share_of_layers = 0.3", "share_of_layers = 0.4"},
      {"share_of_steps = 0.15", "share_of_steps = 0.2"},
      {"least_movement = 0.01", "least_movement = 0.02"},
      {"final_share = 0.5", "final_share = 0.6"},
      {"share_of_movement = 0.5", "share_of_movement = 0.6"},
      {"readings = [\"soft\", \"megatron\"]", "readings = [\"soft\"]"},
      {"router = \"soft\"", "router = \"sparse\""},
      {"equal_deviations = 0.01", "equal_deviations = 0.05"},
      {"margin = 0.01", "margin = 0.02"},
      {"of_cases = \"mean\"", "of_cases = \"most\""},
      {"chance = 0.25", "chance = 0.3"},
      {"items = 10042", "items = 10000"},
      {"[1.0, 1.5, 2.0, 3.0, 4.0]", "[1.0, 2.0, 3.0, 4.0]"},
      {"least_samples = 3", "least_samples = 5"},
      {"id = \"H2.throughput\"", "id = \"H2.speed\""},
      {"pooled = [\"fixed\", \"learned\"]",
       "pooled = [\"sparse\", \"fixed\", \"learned\"]"}};
  std::set<std::string> hashes = {frozen};
  for (const auto& [from, to] : deciding) {
    EXPECT_TRUE(hashes.insert(hash(from, to)).second) << from;
  }
}

void ExpectRefused(const std::string& from, const std::string& to,
                   const std::string& message) {
  const std::string what = MessageOf<DataError>(
      [&] { ParseMiniatureClaims(Changed(from, to), "changed.toml"); });
  EXPECT_TRUE(Says(what, message)) << to;
  EXPECT_EQ(what.find("changed.toml:"), 0u) << what;
}

TEST(MiniatureClaims, FilesOfAnotherFormAreRefusedWithTheirPlace) {
  ExpectRefused("procedure = 2", "procedure = 1", "'procedure' must be 2");
  ExpectRefused("measures = 12", "measures = 11",
                "'family' says 11 measures, but the claims have 12");
  ExpectRefused("level = 0.05", "lewel = 0.05", "'level' is missing");
  ExpectRefused("[family]", "[familiy]", "the table [family] is missing");
  ExpectRefused("[groups]", "[grups]", "the table [groups] is missing");
  ExpectRefused("holds = \"within\"", "holds = \"inside\"",
                "'below', 'above' or 'within'");
  ExpectRefused("share_of_layers = 0.3\n", "", "'share_of_layers' is missing");
  ExpectRefused("assumes = \"one idle", "asumes = \"one idle",
                "'assumes' is missing");
  ExpectRefused("[[history.verdicts]]", "[[history.verdict]]", "unknown key");
  ExpectRefused("verdict = \"UNDECIDED\"\n", "", "'verdict' is missing");
}

// The noise of every compared row is in the difference.
TEST(MiniatureClaims, EveryComparedRowIsPlannedAndPooled) {
  const MiniatureClaims claims = LoadMiniatureClaims();
  for (const MiniatureClaim& claim : claims.claims) {
    for (const MiniatureMeasure& measure : claim.measures) {
      SCOPED_TRACE(measure.id);
      for (const auto* rows : {&measure.rows, &measure.against_rows}) {
        for (const std::string& row : *rows) {
          EXPECT_EQ(std::ranges::count(measure.pooled, row), 1) << row;
        }
      }
      for (const std::string& corpus : measure.corpora) {
        for (const auto* rows : {&measure.pooled, &measure.against_pooled}) {
          for (const std::string& row : *rows) {
            EXPECT_NE(claims.PlannedSeeds(row, corpus), nullptr) << row;
          }
        }
      }
    }
  }
}

// An unread key would be a margin or a row without effect.
TEST(MiniatureClaims, UnknownKeysAreRefusedInEveryTable) {
  const std::pair<const char*, const char*> kTables[] = {
      {"[family]", "odd = 1\n[family]"},
      {"level = 0.05", "level = 0.05\nodd = 1"},
      {"corpus = \"gcide\"", "corpus = \"gcide\"\nodd = 1"},
      {"title = \"Later", "odd = 1\ntitle = \"Later"},
      {"procedure = 1", "procedure = 1\nodd = 1"},
      {"claim = \"C1\"", "claim = \"C1\"\nodd = 1"},
      {"noise = \"paired\"", "noise = \"paired\"\nodd = 1"},
      {"least_samples = 3", "least_samples = 3\nodd = 1"}};
  for (const auto& [from, to] : kTables) {
    ExpectRefused(from, to, "unknown key 'odd'");
  }
  // Keys of another quantity or another comparison.
  for (const char* other :
       {"share_of_layers = 0.3", "share_of_steps = 0.3", "least_movement = 0.3",
        "final_share = 0.5", "share_of_movement = 0.5", "readings = [\"soft\"]",
        "router = \"soft\"", "chance = 0.25", "items = 3",
        "active_experts = [1.0, 2.0]", "least_samples = 3",
        "against_rows = [\"sparse-1\"]", "against_pooled = [\"sparse\"]"}) {
    ExpectRefused("margin = 0.0", std::string("margin = 0.0\n") + other,
                  "unknown key");
  }
  ExpectRefused("least_samples = 3", "least_samples = 3\nrows = [\"sparse\"]",
                "unknown key 'rows'");
}

TEST(MiniatureClaims, TextThatIsNoTomlIsRefused) {
  EXPECT_THROW(ParseMiniatureClaims("[family", "broken.toml"), ConfigError);
}

}  // namespace
}  // namespace softmoe::golden
