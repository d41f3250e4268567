// SPDX-License-Identifier: Apache-2.0
#include "golden/document/imported_results.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/sha256.h"
#include "core/testing/message_test_util.h"
#include "golden/document/fingerprint.h"
#include "golden/testing/document_test_util.h"
#include "golden/verdict/verdict.h"

namespace softmoe::golden {
namespace {

constexpr char kHead[] = "row,seed,column,value\n";
constexpr char kSetUp[] = R"(source = "a report"
program = "Megatron-LM 0.12"
table = "main"
seeds = [7, 8]
[columns.loss]
unit = "nat/token"
metric = "mean over 100 batches"
[columns.params]
unit = "1e6 params"
[facts]
model.d_model = 640
training.aux = "unknown"
[[rows]]
rows = ["owt/sparse/k1"]
router.tau = 1.1
)";

Document Import(const std::string& values, const std::string& set_up = kSetUp) {
  return ImportResults({"theirs.csv", kHead + values}, {"setup.toml", set_up},
                       ExampleDocument());
}

TEST(Import, TakesValuesOverSeedsAndFacts) {
  const std::string values =
      "owt/sparse/k1,7,loss,\n"
      "owt/sparse/k1,7,loss,2.81\n"
      "owt/sparse/k1,8,loss,2.85\n"
      "owt/sparse/k1,8,loss,\n"
      "# a remark\n\n"
      "owt/sparse/k1,7,params,107.741\n"
      "owt/sparse/k2,8,loss,\n";
  // A key that the golden lacks, and one that follows from the values.
  const std::string set_up =
      Replaced(Replaced(kSetUp, "[[rows]]", "training.beta1 = 0.9\n[[rows]]"),
               "router.tau = 1.1", "router.tau = 1.1\ntraining.seed = 3");
  const Document document = Import(values, set_up);
  EXPECT_EQ(document.provenance.origin, Origin::kOtherImplementation);
  EXPECT_EQ(document.provenance.source, "a report");
  EXPECT_EQ(document.provenance.generator, "Megatron-LM 0.12");
  ASSERT_EQ(document.provenance.more.size(), 2u);
  EXPECT_EQ(document.provenance.more[0].value, Sha256Hex(kHead + values));
  EXPECT_EQ(document.provenance.more[1].value, Sha256Hex(set_up));
  EXPECT_EQ(FirstProblem(document), "");
  ASSERT_EQ(document.tables.size(), 1u);
  const Table& table = document.tables[0];
  ASSERT_EQ(table.rows.size(), 1u);  // k2 has no value
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[0].metric, "mean over 100 batches");
  EXPECT_EQ(table.columns[1].metric, "active parameters");
  EXPECT_EQ(table.columns[0].margin, 0.03);

  const Row& row = table.rows[0];
  EXPECT_EQ(row.id, "owt/sparse/k1");
  EXPECT_EQ(row.labels, ExampleDocument().tables[0].rows[0].labels);
  const Cell& loss = row.cells[0];
  EXPECT_DOUBLE_EQ(loss.value, 2.83);
  EXPECT_EQ(loss.text, "2.830000");
  EXPECT_EQ(loss.low, loss.value);
  EXPECT_EQ(loss.high, loss.value);
  EXPECT_EQ(loss.runs, 2);
  ASSERT_TRUE(loss.deviation);
  EXPECT_NEAR(*loss.deviation, 0.04 / std::sqrt(2.0), 1e-15);
  const Cell& params = row.cells[1];
  EXPECT_EQ(params.text, "107.741");
  EXPECT_EQ(params.runs, 1);
  EXPECT_FALSE(params.deviation);

  EXPECT_EQ(FieldValue(document, row, "model.d_model"), "640");
  EXPECT_EQ(FieldValue(document, row, "router.tau"), "1.1");
  EXPECT_EQ(FieldValue(document, row, "training.beta1"), "0.9");
  EXPECT_EQ(FieldValue(document, row, "training.aux"), "");
  EXPECT_EQ(FieldValue(document, row, "training.seed"), "7, 8");
}

// A text that is no plain decimal is printed as means are.
TEST(Import, OneRunKeepsItsTextIfThatIsADecimal) {
  const auto text = [](const std::string& value) {
    return Import("owt/sparse/k1,7,loss," + value +
                  "\nowt/sparse/k1,8,params,1\n")
        .tables[0]
        .rows[0]
        .cells[0]
        .text;
  };
  EXPECT_EQ(text("2.8"), "2.8");
  EXPECT_EQ(text("28e-1"), "2.800000");
}

// The deviation comes from squares of differences: differences of squares would
// keep no digit of numbers far from zero and near each other.
TEST(Import, TheDeviationOfNearNumbersKeepsItsDigits) {
  const Document document = Import(
      "owt/sparse/k1,0,loss,100000000\n"
      "owt/sparse/k1,8,loss,100000000.5\n"
      "owt/sparse/k1,9,loss,100000001.25\n",
      Replaced(kSetUp, "[7, 8]", "[0, 8, 9]"));
  const Cell& loss = document.tables[0].rows[0].cells[0];
  ASSERT_TRUE(loss.deviation);
  // Differences from the mean: -7/12, -1/12 and 8/12.
  EXPECT_NEAR(*loss.deviation, std::sqrt(114.0 / 144 / 2), 1e-12);
}

// As programs write tables: columns in any order, quotes, CRLF, a byte order
// mark.
TEST(Import, ReadsCsvAsProgramsWriteIt) {
  const Document document =
      ImportResults({"theirs.csv",
                     "\xef\xbb\xbf\"value\",\"row\",\"column\",\"seed\"\r\n"
                     "2.8e0,\"owt/sparse/k1\",\"loss\",7\r\n"
                     "0.5,owt/sparse/k1,loss,8"},
                    {"setup.toml", kSetUp}, ExampleDocument());
  EXPECT_DOUBLE_EQ(document.tables[0].rows[0].cells[0].value, 1.65);
  // Blanks around fields, and in quotes, where they are part of the field.
  const Document aligned =
      ImportResults({"theirs.csv",
                     "row, seed,\tcolumn , \"value\" \n"
                     "owt/sparse/k1 , 7, loss, \"2.8\"\n"
                     " \"owt/sparse/k1\", 8 ,loss,\t0.5 \n"
                     "owt/sparse/k2, 8, loss, \n"},
                    {"setup.toml", kSetUp}, ExampleDocument());
  ASSERT_EQ(aligned.tables[0].rows.size(), 1u);
  EXPECT_DOUBLE_EQ(aligned.tables[0].rows[0].cells[0].value, 1.65);
  EXPECT_TRUE(Says(MessageOf<DataError>(
                       [] { Import("owt/sparse/k1,7,\" lo\"\"ss \",2\n"); }),
                   "no column ' lo\"ss '"));
}

std::string WithPiqa() {
  return Replaced(kSetUp, "[facts]",
                  "[columns.piqa]\nunit = \"percent\"\n[facts]");
}

// So the items' sampling counts as noise, too.
TEST(Import, OfAPercentageIsOfTheGoldensItems) {
  const std::string values =
      "owt/sparse/k1,7,piqa,61.5\n"
      "owt/sparse/k1,8,piqa,100\n"
      "owt/sparse/k1,7,loss,2.81\n";
  const Document document = Import(values, WithPiqa());
  const std::vector<Cell>& cells = document.tables[0].rows[0].cells;
  EXPECT_EQ(cells[1].proportion, (Proportion{1838, {}}));
  EXPECT_FALSE(cells[0].proportion);
  Document golden = ExampleDocument();
  golden.tables[0].rows[1].cells[1].proportion->total = 500;
  const auto of_row = [&](const std::string& theirs) {
    return ImportResults({"theirs.csv", kHead + theirs},
                         {"setup.toml", WithPiqa()}, golden)
        .tables[0]
        .rows[0]
        .cells[1];
  };
  EXPECT_EQ(of_row(values).proportion, (Proportion{1838, {}}));
  // Even if the golden has no number, but not if the results have none.
  golden.tables[0].rows[0].cells[1] = {};
  EXPECT_EQ(of_row(values).proportion, (Proportion{500, {}}));
  EXPECT_FALSE(of_row(values + "owt/sparse/k1,8,loss,2.8\n").empty());
  EXPECT_FALSE(of_row("owt/sparse/k1,7,piqa,diverged\n"
                      "owt/sparse/k1,8,loss,2.8\n")
                   .proportion);
  for (const std::string value : {"100.5", "-0.1"}) {
    EXPECT_TRUE(Says(
        MessageOf<DataError>([&] {
          Import(values + "owt/sparse/k1,7,params,1\n" +
                     "owt/sparse/k2,7,piqa," + value + "\n",
                 WithPiqa());
        }),
        "theirs.csv:6: the value '" + value + "' is no percentage of items",
        "from 0 to 100"));
  }
}

// lm-evaluation-harness writes fractions. One value above 1, or one value of at
// most 1 in the golden, shows that small percentages are meant.
TEST(Import, RefusesFractionsInThePlaceOfPercentages) {
  const std::string loss = "owt/sparse/k1,8,loss,2.8\n";
  const std::string fractions =
      "owt/sparse/k1,7,piqa,0.6153\nowt/sparse/k2,7,piqa,1\n";
  const auto import = [&](const std::string& values, const Document& golden) {
    return ImportResults({"theirs.csv", kHead + values},
                         {"setup.toml", WithPiqa()}, golden);
  };
  EXPECT_TRUE(Says(MessageOf<DataError>(
                       [&] { import(loss + fractions, ExampleDocument()); }),
                   "theirs.csv:3: the values of 'piqa'",
                   "none is above 1: these look like fractions; multiply them "
                   "by 100"));
  EXPECT_EQ(import(loss + fractions + "owt/sparse/k1,8,piqa,1.01\n",
                   ExampleDocument())
                .tables[0]
                .rows.size(),
            2u);
  // 0 is the same as a fraction and as a percentage.
  EXPECT_EQ(import(loss + "owt/sparse/k1,7,piqa,0\nowt/sparse/k2,7,piqa,0\n",
                   ExampleDocument())
                .tables[0]
                .rows.size(),
            2u);
  Document golden = ExampleDocument();
  golden.tables[0].rows[0].cells[1].value = 1;
  EXPECT_EQ(import(loss + fractions, golden).tables[0].rows.size(), 2u);
  golden.tables[0].rows[0].cells[1].value = 1.5;
  EXPECT_THROW(import(loss + fractions, golden), DataError);
}

// [SECTION] NAME = VALUE is the same fact as SECTION.NAME = VALUE.
TEST(Import, TakesFactsOfAnyDepth) {
  Document golden = ExampleDocument();
  golden.fields.push_back(
      {"eval.arc_easy.sha256", "ab", FieldClass::kMustMatch, Known::kStated});
  for (const char* fact : {"eval.arc_easy.sha256 = \"cd\"\n",
                           "[facts.eval.arc_easy]\nsha256 = \"cd\"\n",
                           "[facts.eval]\narc_easy = { sha256 = \"cd\" }\n"}) {
    const std::string set_up =
        Replaced(kSetUp, "[[rows]]", std::string(fact) + "[[rows]]");
    const Document document = ImportResults(
        {"theirs.csv", std::string(kHead) + "owt/sparse/k1,7,loss,2.81\n" +
                           "owt/sparse/k1,8,loss,2.81\n"},
        {"setup.toml", set_up}, golden);
    EXPECT_EQ(FieldValue(document, document.tables[0].rows[0],
                         "eval.arc_easy.sha256"),
              "cd")
        << fact;
  }
}

TEST(Import, OneDivergedSeedLeavesTheCellEmpty) {
  const Document document = Import(
      "owt/sparse/k1,7,loss,2.81\n"
      "owt/sparse/k1,8,loss,diverged\n"
      "owt/sparse/k1,8,params,diverged\n");
  for (const Cell& cell : document.tables[0].rows[0].cells) {
    EXPECT_TRUE(cell.empty());
    EXPECT_EQ(cell.flags, std::vector<std::string>{"DIVERGED"});
  }
}

// The mean of the seeds that survived is not the row's, except in a column of
// settings.
TEST(Import, OneDivergedSeedLeavesTheRowWithoutMeasurements) {
  const Document document = Import(
      "owt/sparse/k1,7,loss,2.81\n"
      "owt/sparse/k1,8,loss,diverged\n"
      "owt/sparse/k1,7,piqa,61.5\n"
      "owt/sparse/k1,7,params,107.74\n"
      "owt/sparse/k1,8,params,107.74\n"
      "owt/sparse/k2,7,piqa,62.5\n",
      Replaced(WithPiqa(), "[\"owt/sparse/k1\"]",
               "[\"owt/sparse/k1\", \"owt/sparse/k2\"]"));
  const std::vector<Row>& rows = document.tables[0].rows;
  ASSERT_EQ(rows.size(), 2u);
  for (const size_t measured : {0u, 1u}) {
    EXPECT_TRUE(rows[0].cells[measured].empty());
    EXPECT_EQ(rows[0].cells[measured].flags,
              std::vector<std::string>{"DIVERGED"});
  }
  EXPECT_EQ(rows[0].cells[2].value, 107.74);
  EXPECT_EQ(rows[0].cells[2].runs, 2);
  EXPECT_EQ(FieldValue(document, rows[0], "training.seed"), "7, 8");
  // Another row has runs of its own; what nobody measured did not diverge.
  EXPECT_EQ(rows[1].cells[1].value, 62.5);
  EXPECT_TRUE(rows[1].cells[0].flags.empty());
}

// `values` of one row over the seeds 7 and 8, "COLUMN,VALUE OF 7,VALUE OF 8";
// the message of the refusal.
std::string RefusalOfTwins(const std::vector<std::vector<std::string>>& values,
                           const Document& golden) {
  std::string lines = kHead;
  for (const std::vector<std::string>& each : values) {
    for (const size_t seed : {1u, 2u}) {
      lines += "owt/sparse/k1," + std::string(seed == 1 ? "7" : "8") + "," +
               each[0] + "," + each[seed] + "\n";
    }
  }
  return MessageOf<DataError>([&] {
    ImportResults({"theirs.csv", lines}, {"setup.toml", WithPiqa()}, golden);
  });
}

TEST(Import, RefusesOneRunUnderTwoSeeds) {
  Document golden = ExampleDocument();
  golden.tables[0].rows[0].cells[1].flags.clear();  // piqa is measured
  const auto refusal = [&](const std::vector<std::vector<std::string>>& of) {
    return RefusalOfTwins(of, golden);
  };
  EXPECT_EQ(
      refusal({{"loss", "2.837123", "2.837123"}}),
      "theirs.csv:3: owt/sparse/k1, seed 8 has the same numbers as "
      "seed 7 (line 2), probably one run entered twice; remove one of them, "
      "or give more digits if they are two runs");
  // Rounded, they agree by chance.
  EXPECT_EQ(refusal({{"loss", "2.83712", "2.83712"}}), kNoError);
  EXPECT_EQ(refusal({{"loss", "2.8371200", "2.83712"}}), kNoError);
  EXPECT_EQ(refusal({{"loss", "0.00283712", "2.83712e-3"}}), kNoError);
  EXPECT_EQ(refusal({{"loss", "0.0000283712", "2.83712e-5"}}), kNoError);
  EXPECT_EQ(refusal({{"loss", "10000000000", "10000000000"}}), kNoError);
  // Two digits of the loss, and one of a percentage of 1838 items: 3.
  EXPECT_EQ(refusal({{"loss", "2.8371", "2.8371"},
                     {"piqa", "61.53427638737758", "61.53427638737758"}}),
            kNoError);
  EXPECT_TRUE(Says(refusal({{"piqa", "61.53427638737758", "61.534276387377580"},
                            {"loss", "2.83712", "2.83712"}}),
                   "theirs.csv:3: ", "(line 2)"));
  // A number that differs, or that only one run has, tells the runs apart.
  EXPECT_EQ(
      refusal({{"loss", "2.837123", "2.837123"}, {"piqa", "61.53", "61.59"}}),
      kNoError);
  EXPECT_EQ(refusal({{"loss", "2.837123", "2.837123"}, {"piqa", "61.53", ""}}),
            kNoError);
  // A number that is the same in every run says nothing.
  EXPECT_EQ(refusal({{"loss", "2.83", "2.83"},
                     {"params", "107.7410001", "107.7410001"}}),
            kNoError);
  Document derived = golden;
  derived.tables[0].rows[0].cells[0].flags = {"DERIVED"};
  EXPECT_EQ(RefusalOfTwins({{"loss", "2.837123", "2.837123"}}, derived),
            kNoError);
  Document paper = golden;
  paper.provenance.origin = Origin::kPaper;
  EXPECT_NE(RefusalOfTwins({{"loss", "2.837123", "2.837123"}}, paper),
            kNoError);
  Cell& point = paper.tables[0].rows[0].cells[0];
  point.low = point.high = point.value;
  EXPECT_EQ(RefusalOfTwins({{"loss", "2.837123", "2.837123"}}, paper),
            kNoError);
  point = Cell();  // nothing is known of it
  EXPECT_NE(RefusalOfTwins({{"loss", "2.837123", "2.837123"}}, paper),
            kNoError);
  // 1800 has as many digits as 1838.
  golden.tables[0].rows[0].cells[1].proportion->total = 1800;
  EXPECT_NE(
      refusal({{"piqa", "61.53", "61.53"}, {"loss", "2.83712", "2.83712"}}),
      kNoError);
}

TEST(Import, RefusesValuesWithPlaceAndRemedy) {
  const std::string good = "owt/sparse/k1,7,loss,2.81\n";
  const struct {
    std::string values;
    std::vector<std::string> parts;
  } kBad[] = {
      {"owt/sparse/k3,7,loss,2.8\n",
       {"theirs.csv:2: no row 'owt/sparse/k3' in the golden's main; did you "
        "mean 'owt/sparse/k"}},
      {"owt/sparse/k1,7,los,2.8\n",
       {"theirs.csv:2: no column 'los' in the golden's main; did you mean "
        "'loss'?"}},
      {"owt/sparse/k1,7,piqa,60\n",
       {"theirs.csv:2: the set-up states no unit for 'piqa'",
        "[columns.piqa]"}},
      {good + "owt/sparse/k1,9,loss,2.8\n",
       {"theirs.csv:3: the seed 9 is not among the set-up's [7, 8]"}},
      {"owt/sparse/k1,7.5,loss,2.8\n",
       {"theirs.csv:2: the seed '7.5' is not a whole number"}},
      {"owt/sparse/k1,,loss,2.8\n", {"theirs.csv:2: the seed ''"}},
      {good + "\n" + good,
       {"theirs.csv:4: owt/sparse/k1, seed 7, loss", "in line 2"}},
      {"owt/sparse/k1,7,loss,2.8nat\n",
       {"theirs.csv:2: the value '2.8nat' is not a number", "diverged"}},
      {"owt/sparse/k1,7,loss,nan\n", {"the value 'nan' is not a number"}},
      {"owt/sparse/k1,7,loss,-inf\n", {"the value '-inf' is not a number"}},
      {"owt/sparse/k1,7,loss,1e300\n", {"the value '1e300' is not a number"}},
      {"owt/sparse/k1,7,loss,10000000001\n",
       {"the value '10000000001' is not a number up to 1e+10; leave it empty"}},
      {"owt/sparse/k1,7,loss,-2.8\n",
       {"theirs.csv:2: the value '-2.8' is negative", "golden's column loss"}},
      {"owt/sparse/k1,7,loss,2,81\n",
       {"theirs.csv:2: 5 fields", "decimal point"}},
      {"owt/sparse/k1;7;loss;2.81\n", {"theirs.csv:2: 1 fields"}},
      {"owt/sparse/k1,7,\"loss,2.81\n",
       {"theirs.csv:2: a quotation mark is not closed"}},
      {good, {"theirs.csv: no values for the seed 8"}},
  };
  for (const auto& bad : kBad) {
    EXPECT_TRUE(
        Says(MessageOf<DataError>([&] { Import(bad.values); }), bad.parts))
        << bad.values;
  }
  for (const std::string head :
       {"", "row,seed,column\n", "row,seed,column,value,value\n",
        "row,seed,column,cell\n", "row;seed;column;value\n"}) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       ImportResults({"theirs.csv", head},
                                     {"setup.toml", kSetUp}, ExampleDocument());
                     }),
                     "theirs.csv:1: ", "row,seed,column,value"))
        << head;
  }
}

TEST(Import, RefusesSetUpsWithPlaceAndRemedy) {
  const std::string values =
      "owt/sparse/k1,7,loss,2.81\nowt/sparse/k1,8,loss,2.85\n";
  const struct {
    const char *what, *with;
    std::vector<std::string> parts;
  } kBad[] = {
      {"\"a report\"", "\"\"", {"setup.toml:1:10: 'source' is empty; fill it"}},
      {"\"a report\"",
       "\"TODO\"",
       {"setup.toml: '/provenance@source' is the placeholder 'TODO'"}},
      {"\"mean over 100 batches\"",
       "\"tbd\"",
       {"setup.toml: '/tables/main/cells/loss@metric_def' is the placeholder"}},
      {"program =", "programm =", {"'program' is missing"}},
      {"\"main\"", "\"mein\"", {"setup.toml:3:9: 'table' is 'mein'", "'main'"}},
      {"[7, 8]",
       "[7, 7]",
       {"setup.toml:4:9: 'seeds' must list each seed once"}},
      {"[7, 8]", "[-1, 8]", {"none below 0"}},
      {"[7, 8]", "[]", {"number the runs"}},
      {"nat/token",
       "bit/token",
       {"setup.toml:6:8: 'unit' is 'bit/token'", "is in 'nat/token'",
        "convert the values"}},
      {"unit = \"nat/token\"\n", "", {"'unit' is missing"}},
      {"[columns.loss]\nunit = \"nat/token\"\nmetric = \"mean over 100 "
       "batches\"\n[columns.params]\nunit = \"1e6 params\"\n",
       "",
       {"the key 'columns' is missing: say the unit of each column"}},
      {"[columns.loss]\nunit = \"nat/token\"\nmetric = \"mean over 100 "
       "batches\"\n",
       "",
       {"theirs.csv:2: the set-up states no unit for 'loss'; add "
        "[columns.loss]"}},
      {"columns.params", "columns.parms", {"unknown key 'parms'", "params"}},
      {"[columns.loss]", "[columns.loss]\nodd = 1", {"unknown key 'odd'"}},
      {"seeds =", "seed = 1\nseeds =", {"setup.toml:4:", "unknown key 'seed'"}},
      {"\"mean over 100 batches\"", "\"\"", {"'metric' is empty; fill it in"}},
      {"model.d_model = 640",
       "model.d_modl = 640",
       {"setup.toml:11:16: the fact 'model.d_modl' is not known",
        "did you mean 'model.d_model'?"}},
      {"model.d_model = 640",
       "model.d_model = \"\"",
       {"'model.d_model' is empty; fill it in, or write \"unknown\""}},
      {"model.d_model = 640",
       "model.d_model = [640]",
       {"'model.d_model' must be a text or a number"}},
      {"model.d_model = 640",
       "model.d_model = \"6\\u00004\"",
       {"setup.toml:11:17: the fact 'model.d_model' contains a NUL"}},
      {"model.d_model = 640",
       "model.d_model = 640\n\"model.d_model\" = 64",
       {"setup.toml:12:19: the fact 'model.d_model' is given twice; remove "
        "one"}},
      {"router.tau = 1.1",
       "router.tau = 1.1\n\"router.tau\" = 1.2",
       {"setup.toml:16:16: the fact 'router.tau' is given twice"}},
      {"model.d_model = 640\n",
       "",
       {"setup.toml:10:",
        "the row owt/sparse/k1 does not state model.d_model; ",
        "as \"unknown\" if nobody knows"}},
      {"[facts]\nmodel.d_model = 640\ntraining.aux = \"unknown\"\n",
       "",
       {"setup.toml:1: the row owt/sparse/k1 does not state model.d_model, "
        "training.aux; add"}},
      {"router.tau = 1.1\n", "", {"does not state router.tau"}},
      {"owt/sparse/k1",
       "owt/sparse/k7",
       {"setup.toml:14:8: 'rows' names 'owt/sparse/k7', which the golden's "
        "main lacks; did you mean"}},
      {"[\"owt/sparse/k1\"]", "[]", {"'rows' must list the ids of rows"}},
      {"router.tau = 1.1",
       "router.tau = 1.1\nmodel.d_model = 64",
       {"setup.toml:16:17: the fact 'model.d_model' is also given for all "
        "rows, under [facts] (setup.toml:11:17); remove one"}},
      {"rows = [\"owt/sparse/k1\"]",
       "rows = [\"owt/sparse/k1\", \"owt/sparse/k1\"]",
       {"'rows' lists owt/sparse/k1, for which an earlier block already "
        "gives 'router.tau'"}},
  };
  for (const auto& bad : kBad) {
    const std::string set_up = Replaced(kSetUp, bad.what, bad.with);
    EXPECT_TRUE(
        Says(MessageOf<DataError>([&] { Import(values, set_up); }), bad.parts))
        << set_up;
  }
  EXPECT_TRUE(Says(MessageOf<ConfigError>(
                       [&] { Import(values, Replaced(kSetUp, "[7", "7")); }),
                   "setup.toml:4:", "not valid TOML"));
}

TEST(Import, TakesBytesPerTokenOnlyAsAPositiveNumber) {
  Document golden = ExampleDocument();
  golden.fields.push_back({kBytesField, "4.40"});
  const auto import = [&](const std::string& value) {
    return ImportResults(
        {"theirs.csv",
         std::string(kHead) +
             "owt/sparse/k1,7,loss,2.81\nowt/sparse/k1,8,loss,2.82\n"},
        {"setup.toml", Replaced(kSetUp, "[facts]",
                                "[facts]\ndata.bytes_per_token = " + value)},
        golden);
  };
  for (const char* value : {"1", "1.0", "\"1.0\""}) {
    EXPECT_EQ(FieldValue(import(value), {}, kBytesField).substr(0, 1), "1");
  }
  EXPECT_EQ(FieldValue(import("\"unknown\""), {}, kBytesField), "");
  for (const char* value : {"\"3.0 bytes\"", "\"3,0\"", "\"3.0e0\"", "\"~3\"",
                            "\"0x3\"", "0", "-3.0", "1e300", "nan"}) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { import(value); }),
                     "setup.toml:11:", "a number above 0", "\"unknown\""))
        << value;
  }
}

// Imports refuse whatever golden documents refuse, and blame the right file.
TEST(Import, RefusesPlaceholders) {
  Document golden = ExampleDocument();
  golden.tables[0].rows[1].cells[0].value = -2.5;  // so others may be negative
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     ImportResults(
                         {"theirs.csv", std::string(kHead) +
                                            "owt/sparse/k1,7,loss,-999\n"
                                            "owt/sparse/k1,8,params,1\n"},
                         {"setup.toml", kSetUp}, golden);
                   }),
                   "theirs.csv: ", "loss", "placeholder -999"));
}

size_t CountOf(const Verdicts& verdicts, Status status) {
  return static_cast<size_t>(
      std::ranges::count(verdicts.cells, status, &CellVerdict::status));
}

// With one run and no seeds, exact cells pass, the others cannot be decided,
// and no set-up differs.
TEST(Import, OfThePapersOwnTableIsAsExactAsItIs) {
  const Table& table = *Paper().FindTable("main_results");
  const ImportTemplate files = FilledIn(Paper(), table);
  const Document results = ImportResults({"theirs.csv", files.values},
                                         {"setup.toml", files.set_up}, Paper());
  ASSERT_EQ(results.tables[0].rows.size(), table.rows.size());
  for (const Row& row : results.tables[0].rows) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const auto& theirs = At(table.id, row.id, table.columns[c].id).proportion;
      ASSERT_EQ(row.cells[c].proportion.has_value(), theirs.has_value());
      if (!theirs) continue;
      EXPECT_EQ(row.cells[c].proportion->total, theirs->total);
    }
  }
  const Verdicts verdicts = Judge(results, Paper());
  size_t exact = 0, cells = 0;
  for (const CellVerdict& verdict : verdicts.cells) {
    const Cell& cell = At(verdict.table, verdict.row, verdict.column);
    ++cells;
    if (cell.low == cell.high || std::ranges::count(cell.flags, "DERIVED")) {
      ++exact;
      EXPECT_EQ(verdict.status, Status::kPass)
          << verdict.row << " " << verdict.column << ": " << verdict.reason;
    } else {
      EXPECT_EQ(verdict.status, Status::kInconclusive)
          << verdict.row << " " << verdict.column << ": " << verdict.reason;
      EXPECT_TRUE(Says(verdict.reason, "seed noise is unknown"));
    }
  }
  EXPECT_GT(exact, 0u);
  EXPECT_GT(cells, exact);
  EXPECT_EQ(CountOf(verdicts, Status::kNotComparable), 0u);
  EXPECT_EQ(verdicts.fingerprint_differences.size(), 0u);
  EXPECT_EQ(verdicts.exit_code(), ExitCode::kInconclusive);
}

// A stated fact that differs is found in the rows that have it, and nowhere
// else.
TEST(Import, OfAnotherSetUpIsNotComparable) {
  ImportTemplate files = FilledIn(Paper(), *Paper().FindTable("main_results"));
  files.set_up = Replaced(files.set_up, "training.steps = \"18000\"",
                          "training.steps = \"20000\"");
  const Verdicts verdicts =
      Judge(ImportResults({"theirs.csv", files.values},
                          {"setup.toml", files.set_up}, Paper()),
            Paper());
  for (const CellVerdict& verdict : verdicts.cells) {
    EXPECT_EQ(verdict.status == Status::kNotComparable,
              verdict.row.starts_with("owt/"))
        << verdict.row << " " << verdict.column;
  }
}

// Every table of the paper that has numbers can be imported by its template.
TEST(Import, TemplatesOfAllTablesCanBeFilledIn) {
  for (const Table& table : Paper().tables) {
    ImportTemplate files = FilledIn(Paper(), table);
    // Facts that are only reported may be stated, too.
    const std::string said = " = \"\"  # in the golden: ";
    for (size_t at = 0; (at = files.set_up.find(said, at)) != std::string::npos;
         ++at) {
      files.set_up.replace(at, 5, " = \"unknown\"");
      const size_t line = files.set_up.rfind('\n', at) + 1;
      ASSERT_EQ(files.set_up.substr(line, 2), "# ");
      files.set_up.erase(line, 2);
    }
    if (!files.values.ends_with("value\n")) {
      const Document results = ImportResults(
          {"theirs.csv", files.values}, {"setup.toml", files.set_up}, Paper());
      EXPECT_EQ(results.tables[0].rows.size(), table.rows.size()) << table.id;
      EXPECT_EQ(results.tables[0].rounding, Rounding::kNearest) << table.id;
    }
    // Nothing that the user left empty is taken from the golden.
    const ImportTemplate empty = MakeImportTemplate(Paper(), table);
    EXPECT_FALSE(Says(empty.set_up, "training.seed"));  // of class ignore
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       ImportResults({"theirs.csv", empty.values},
                                     {"setup.toml", empty.set_up}, Paper());
                     }),
                     "setup.toml:", "fill it in"));
  }
}

}  // namespace
}  // namespace softmoe::golden
