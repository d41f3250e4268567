// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

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

// Of four layers that share eight experts, one in each whatever the logits, the
// late two have between a quarter and three quarters.
TEST(LearningRateNeeded, IsInfiniteWhereNoLogitsGiveTheFinalShare) {
  MiniatureRun run;
  run.allocation.emplace_back().allocation = {1, 1, 3, 3};
  MiniatureMeasure measure;
  measure.share_of_layers = 0.5;
  measure.share_of_movement = 1;
  const auto needed = [&](double final_share) {
    measure.final_share = final_share;
    return LearningRateNeeded(measure, run);
  };
  EXPECT_EQ(needed(0.5), 0);
  // Softmax of 0.35 against 0.15.
  EXPECT_NEAR(needed(0.6), std::log(7.0 / 3) / 2, 1e-12);
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
  // Every present claim has its predecessor.
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

TEST(MiniatureClaims, FilesThatDoNotFitTogetherAreRefusedWithTheirPlace) {
  ExpectRefused("procedure = 2", "procedure = 1", "must be 2");
  ExpectRefused("measures = 12", "measures = 11",
                "says 11 measures, but the claims have 12");
  ExpectRefused("level = 0.05", "level = 1.0", "must be between 0 and 1");
  ExpectRefused("level = 0.05", "level = nan", "must be between 0 and 1");
  ExpectRefused("level = 0.05", "lewel = 0.05", "'level' is missing");
  ExpectRefused("[family]", "[familiy]", "the table [family] is missing");
  ExpectRefused("seeds = [1234, 1235, 1236, 1237]", "seeds = [1234, 1234]",
                "must be two or more, all different");
  ExpectRefused("corpus = \"foldoc\"", "corpus = \"gcide\"",
                "plans 'sparse-1' on 'gcide' twice");
  ExpectRefused(
      "learned = [\"softmoe-1.5-calibrated\"",
      "learned = [\"softmoe-1.6-calibrated\"",
      "names 'softmoe-1.6-calibrated', which is not a planned row; did "
      "you mean 'softmoe-1.5-calibrated'?");
  ExpectRefused(
      "sparse = [\"sparse-1\", \"sparse-2\", \"sparse-3\", "
      "\"sparse-4\"]",
      "sparse = [\"sparse-1\"]", "two rows or more");
  ExpectRefused("rows = [\"jitter\"]\nagainst = \"rows\"",
                "rows = [\"jiter\"]\nagainst = \"rows\"",
                "did you mean 'jitter'?");
  ExpectRefused(
      "corpora = [\"gcide\"]\nof_cases = \"most\"\nholds = "
      "\"above\"\nmargin = -0.03",
      "corpora = [\"foldoc\"]\nof_cases = \"most\"\nholds = "
      "\"above\"\nmargin = -0.03",
      "which is not planned on 'foldoc'");
  ExpectRefused("holds = \"within\"", "holds = \"inside\"",
                "'below', 'above' or 'within'");
  ExpectRefused("margin = 0.6931471805599453", "margin = -1.0",
                "positive for 'within'");
  ExpectRefused("margin = 0.5", "margin = inf", "must be finite");
  ExpectRefused("id = \"C2\"", "id = \"C1a\"", "is 'C1a' a second time");
  ExpectRefused("against = \"sparse_curve\"", "against = \"zero\"",
                "'zero' does not go with 'loss'");
  ExpectRefused("against_rows = [\"sparse-1\", \"sparse-2\", \"sparse-3\"]",
                "against_rows = [\"sparse-1\", \"sparse-2\"]",
                "one row for each");
  ExpectRefused("pooled = [\"sparse\", \"fixed\", \"learned\", \"jitter\"]",
                "pooled = [\"sparse\", \"fixed\", \"learned\"]",
                "lacks 'sparse-1-jitter-0.05'");
  ExpectRefused("rows = [\"jitter\"]\nagainst = \"rows\"",
                "rows = [\"softmoe-star-1-paper-tau\", \"sparse-2-jitter-0.05\""
                ", \"sparse-3-jitter-0.05\"]\nagainst = \"rows\"",
                "lacks 'softmoe-star-1-paper-tau'");
  ExpectRefused("active_experts = [1.0, 1.5", "active_experts = [1.0, 1.0",
                "ascending");
  ExpectRefused("least_samples = 3", "least_samples = 1", "at least 2");
  ExpectRefused("share_of_layers = 0.3\n", "", "'share_of_layers' is missing");
  ExpectRefused("assumes = \"one idle", "asumes = \"one idle",
                "'assumes' is missing");
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

TEST(MiniatureClaims, NumbersAreRefusedFromTheEndsOfTheirRangesOn) {
  const std::string between = "must be between 0 and 1";
  for (const char* key :
       {"level = 0.05", "confidence = 0.95", "own_deviation_rows = 0.34",
        "share_of_layers = 0.3", "share_of_steps = 0.15",
        "least_movement = 0.01", "share_of_movement = 0.5",
        "equal_deviations = 0.01", "chance = 0.25"}) {
    const std::string name =
        std::string(key).substr(0, std::string_view(key).find(" = "));
    for (const char* value : {"0.0", "1.0", "-0.5", "1.5", "nan"}) {
      ExpectRefused(key, name + " = " + value, "'" + name + "' " + between);
    }
  }
  for (const char* value : {"1", "1000000", "nan"}) {
    ExpectRefused("own_deviation = 3", std::string("own_deviation = ") + value,
                  "must be between 1 and 1e+06");
  }
  // The paper's last layers have more than their uniform share.
  for (const char* value : {"0.3", "1.0", "nan"}) {
    ExpectRefused("final_share = 0.5", std::string("final_share = ") + value,
                  "must be between 0.3 and 1");
  }
  ExpectRefused("items = 10042", "items = 0", "must be positive");
  ExpectRefused("least_samples = 3", "least_samples = 1", "at least 2");
  ExpectRefused("margin = 0.6931471805599453", "margin = 0.0",
                "positive for 'within'");
  for (const char* experts :
       {"[1.0]", "[0.0, 1.0]", "[-1.0, 1.0]", "[2.0, 1.0]", "[1.0, nan]"}) {
    ExpectRefused("active_experts = [1.0, 1.5, 2.0, 3.0, 4.0]",
                  std::string("active_experts = ") + experts,
                  "two or more positive numbers, ascending");
  }
  // The last accepted values.
  const MiniatureClaims least =
      ParseMiniatureClaims(Changed("items = 10042", "items = 1"), "least.toml");
  EXPECT_EQ(Measure(least, "C6.hellaswag").items, 1);
  const MiniatureClaims samples = ParseMiniatureClaims(
      Changed("least_samples = 3", "least_samples = 2"), "least.toml");
  EXPECT_EQ(Measure(samples, "H2.throughput").least_samples, 2);
  const MiniatureClaims experts = ParseMiniatureClaims(
      Changed("[1.0, 1.5, 2.0, 3.0, 4.0]", "[0.5, 4.0]"), "least.toml");
  EXPECT_EQ(Measure(experts, "H2.throughput").active_experts,
            (std::vector<double>{0.5, 4}));
}

TEST(MiniatureClaims, ListsThatNameNothingOrTheSameTwiceAreRefused) {
  ExpectRefused("corpora = [\"gcide\", \"foldoc\"]", "corpora = []",
                "names none");
  ExpectRefused("rows = [\"fixed\", \"learned\"]", "rows = []", "names no row");
  ExpectRefused("rows = [\"fixed\", \"learned\"]",
                "rows = [\"learned\", \"softmoe-2-calibrated\"]",
                "names 'softmoe-2-calibrated' twice");
  ExpectRefused("rows = [\"sparse-1-jitter-0.05\", \"sparse-2-jitter-0.05\"",
                "rows = [\"sparse-1-jitter-0.05\", \"sparse-1-jitter-0.05\"",
                "plans 'sparse-1-jitter-0.05' on 'gcide' twice");
  ExpectRefused(
      "rows = [\"sparse-1-jitter-0.05\", \"sparse-2-jitter-0.05\", "
      "\"sparse-3-jitter-0.05\"]\ncorpus",
      "rows = []\ncorpus", "names no row");
  ExpectRefused("seeds = [1234, 1235, 1236, 1237]", "seeds = [1234]",
                "must be two or more, all different");
  ExpectRefused("[groups]", "[grups]", "the table [groups] is missing");
  ExpectRefused("id = \"C2.order\"", "id = \"C2.share\"",
                "is 'C2.share' a second time");
  ExpectRefused("id = \"C2.order\"", "id = \"C1a\"", "is 'C1a' a second time");
  ExpectRefused("[[claims]]",
                "[[claims]]\nid = \"C0\"\ntitle = \"t\"\nsentence = \"s\"\n"
                "where = \"w\"\nnot_testable = \"n\"\nassumes = \"a\"\n"
                "[[claims]]",
                "the key 'measures' is missing: has none that is judged");
  ExpectRefused("of_cases = \"mean\"", "of_cases = \"none\"",
                "has none that is judged");
  // The rows of the curve and of the range are needed, too.
  ExpectRefused("pooled = [\"sparse\", \"fixed\", \"learned\"]",
                "pooled = [\"fixed\", \"learned\"]", "lacks 'sparse-1'");
  ExpectRefused("against_pooled = [\"sparse\", \"fixed\", \"learned\"]",
                "against_pooled = [\"fixed\", \"learned\"]",
                "'against_pooled' lacks 'sparse-1'");
  // The pool of H1.halving itself needs no sparse rows.
  EXPECT_EQ(Measure(LoadMiniatureClaims(), "H1.halving").pooled.size(), 5u);
}

TEST(MiniatureClaims, AMeanIsOfRowsThatMakeOneSum) {
  for (const char* id :
       {"C1a.curve", "C6.hellaswag", "H1.halving", "H2.throughput"}) {
    std::string text = FileText();
    const size_t measure = text.find(fmt::format("id = \"{}\"", id));
    const size_t begin = text.find("of_cases = \"every\"", measure);
    ASSERT_NE(begin, std::string::npos) << id;
    text.replace(begin, 18, "of_cases = \"mean\"");
    EXPECT_TRUE(Says(MessageOf<DataError>(
                         [&] { ParseMiniatureClaims(text, "changed.toml"); }),
                     "'mean' does not go with"))
        << id;
  }
}

TEST(MiniatureClaims, HistoryIsOfHashesAndOfClaimsThatStand) {
  const std::string hash = "hash = \"f40f63b9";
  ExpectRefused(hash, "hash = \"F40f63b9", "64 hexadecimal digits");
  ExpectRefused(hash, "hash = \"f40f63b", "64 hexadecimal digits");
  ExpectRefused("now = [\"C1a\", \"C1b\"]", "now = [\"C1a\", \"C1\"]",
                "names 'C1', which is no claim");
  ExpectRefused("now = [\"C2\"]", "now = [\"C1b\"]",
                "names 'C1b' a second time");
  ExpectRefused("[[history.verdicts]]", "[[history.verdict]]", "unknown key");
  ExpectRefused("verdict = \"UNDECIDED\"\n", "", "'verdict' is missing");
  const std::string text = FileText();
  const std::string again = text.substr(text.find("[[history]]\n"));
  ExpectRefused("[[history]]\n", again + "\n[[history]]\n",
                "is there a second time");
  // No reading has this name.
  ExpectRefused(
      "readings = [\"soft\", \"megatron\"]",
      "readings = [\"soft\", \"megatrom\"]",
      "names 'megatrom', which is no reading of the balance loss; did "
      "you mean 'megatron'?");
}

TEST(MiniatureClaims, EachQuantityIsComparedAsOneCan) {
  const std::pair<const char*, std::set<std::string>> kMeaningful[] = {
      {"loss", {"budget_group", "sparse_curve", "rows"}},
      {"infer_ae", {"rows"}},
      {"log_load_variance", {"budget_group", "rows"}},
      {"hellaswag", {"budget_group", "rows"}},
      {"late_share", {"zero"}},
      {"depth_order", {"zero"}},
      {"early_movement", {"zero"}},
      {"halving_cost", {"half_of_sparse_range"}},
      {"log_throughput", {"next_active_experts"}}};
  for (const auto& [quantity, meaningful] : kMeaningful) {
    for (const char* against :
         {"zero", "rows", "budget_group", "sparse_curve",
          "half_of_sparse_range", "next_active_experts"}) {
      std::string text = FileText();
      const size_t measure =
          text.find(fmt::format("quantity = \"{}\"", quantity));
      ASSERT_NE(measure, std::string::npos) << quantity;
      const size_t begin = text.find("against = \"", measure) + 11;
      text.replace(begin, text.find('"', begin) - begin, against);
      // If there is one, it may say that other keys are missing.
      const std::string message = MessageOf<DataError>(
          [&] { ParseMiniatureClaims(text, "changed.toml"); });
      const auto refused =
          Says(message,
               fmt::format("'{}' does not go with '{}'", against, quantity));
      EXPECT_EQ(bool{refused}, !meaningful.contains(against))
          << quantity << " " << against << ": " << message;
    }
  }
}

TEST(MiniatureClaims, RowsWithOtherSeedsMakeNoPairs) {
  ExpectRefused(
      "rows = [\"softmoe-1.5-calibrated\", \"softmoe-2-calibrated\"]\nagainst "
      "= \"rows\"\nagainst_rows = [\"softmoe-star-1.5-calibrated\", "
      "\"softmoe-star-2-calibrated\"]\ncorpora = [\"gcide\", \"foldoc\"]\n"
      "of_cases = \"most\"\nholds = \"below\"\nmargin = 0.0\nnoise = "
      "\"paired\"\npooled = [\"sparse\", \"fixed\", \"learned\"]",
      "rows = [\"softmoe-1.5-paper-tau\"]\nagainst = \"rows\"\nagainst_rows = "
      "[\"sparse-1\"]\ncorpora = [\"gcide\"]\nof_cases = \"most\"\nholds = "
      "\"below\"\nmargin = 0.0\nnoise = \"paired\"\npooled = [\"sparse\", "
      "\"softmoe-1.5-paper-tau\"]",
      "have other seeds on 'gcide', so no pairs");
}

TEST(MiniatureClaims, TextThatIsNoTomlIsRefused) {
  EXPECT_THROW(ParseMiniatureClaims("[family", "broken.toml"), ConfigError);
}

}  // namespace
}  // namespace softmoe::golden
