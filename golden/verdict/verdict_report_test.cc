// SPDX-License-Identifier: Apache-2.0
//
// Whole reports, letter by letter: every column, width and separator.
#include "golden/verdict/verdict_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"

namespace softmoe::golden {
namespace {

CellVerdict VerdictOfCell(const std::string& row, const std::string& column,
                          Status status) {
  CellVerdict cell;
  cell.table = "main";
  cell.row = row;
  cell.column = column;
  cell.status = status;
  return cell;
}

// Verdicts of every kind, with binary fractions.
Verdicts Everything() {
  Verdicts verdicts;
  verdicts.fingerprint_differences = {
      {{"model.d_model", "640", "64"}, {"main/a", "main/b", "main/c"}},
      {{"data.corpus", "owt", ""}, {"main/c"}}};
  for (int i = 0; i < 8; ++i) {
    verdicts.assumptions.push_back(
        {{"assumed." + std::to_string(i), "", std::to_string(i)}, {"main/a"}});
  }
  verdicts.reported = {{{"cpu", "x", "y"}, {"main/a", "main/b"}}};
  verdicts.remarks = {"A remark."};

  CellVerdict pass = VerdictOfCell("a", "loss", Status::kPass);
  pass.golden_text = "2.84";
  pass.ours = 2.875;
  pass.difference = 0.03125;
  pass.half_width = 0.015625;
  pass.margin = 0.25;
  pass.assumptions = {6, 0, 2, 1};
  pass.notes = {"N1", "N2"};
  CellVerdict fail = VerdictOfCell("a", "piqa", Status::kFail);
  fail.golden_text = "61.5";
  fail.ours = 61.5;
  fail.difference = 0;
  fail.reason = "outside";
  fail.assumptions = {3, 4};
  CellVerdict missing = VerdictOfCell("b", "loss", Status::kUnsupported);
  missing.golden_text = "3";
  missing.reason = "no value";
  missing.notes = {"N3"};
  missing.assumptions = {0};
  CellVerdict open = VerdictOfCell("b", "piqa", Status::kInconclusive);
  open.golden_text = "60";
  open.ours = 1234567.5;
  open.difference = -1234507.5;
  open.reason = "4 runs do not decide; 9 would for FAIL";
  open.runs_needed = 9;
  CellVerdict mistrusted = VerdictOfCell("c", "loss", Status::kMistrusted);
  mistrusted.golden_text = "1";
  mistrusted.ours = 1;
  mistrusted.difference = 0.0009765625;
  mistrusted.reason = "equal bits";
  mistrusted.assumptions = {7};
  verdicts.cells = {pass, fail, missing, open, mistrusted};
  CellVerdict recorded = VerdictOfCell("c", "hours", Status::kPass);
  recorded.golden_text = "7";
  recorded.ours = 8;
  recorded.difference = 1;
  recorded.reason = "recorded, not judged";
  recorded.notes = {"N4"};
  verdicts.recorded = {recorded};
  verdicts.claims = {{"lower", Status::kPass, "holds", {1, 2}},
                     {"higher", Status::kInconclusive, "leans", {1}},
                     {"same", Status::kPass, "", {0}}};
  return verdicts;
}

TEST(DescribeVerdicts, WritesEverything) {
  EXPECT_TRUE(EqualsFile(DescribeVerdicts(Everything(), {Status::kInconclusive,
                                                         Status::kUnsupported}),
                         "golden/verdict/testdata/verdicts.txt"));
}

TEST(DescribeVerdicts, LeavesOutWhatThereIsNot) {
  Verdicts verdicts;
  EXPECT_EQ(
      DescribeVerdicts(verdicts, {}),
      R"(No table and row of the golden is in the results: nothing to compare.
0 cells
0 claims
OVERALL NOT_COMPARABLE (exit code 3)
)");
  verdicts.recorded = Everything().recorded;
  verdicts.recorded[0].ours = 8.0156789;
  verdicts.recorded[0].difference = 0;
  EXPECT_EQ(
      DescribeVerdicts(verdicts, {Status::kMistrusted}),
      R"(row     column  golden     ours  delta  +-  margin  verdict   reason
------  ------  ------  -------  -----  --  ------  --------  ------
main/c  hours        7  8.01568     +0   -       -  recorded  see N4

Only recorded columns: nothing was judged.
0 cells
0 claims
allowed: MISTRUSTED
OVERALL INCONCLUSIVE (exit code 4)
)");
  // One claim without any cell is still a result.
  verdicts.claims = {{"lower", Status::kPass, "", {}}};
  EXPECT_EQ(DescribeVerdicts(verdicts, {}).find("nothing was judged"),
            std::string::npos);
}

// Pairs stand below their claim, and do not count as claims.
TEST(DescribeVerdicts, ShowsThePairsOfWhichMostMustHold) {
  Verdicts verdicts;
  verdicts.claims = {
      {"most",
       Status::kPass,
       "holds",
       {},
       {{"most.1", "points to holding"}, {"most.2", "no value"}}},
      {"lower", Status::kPass, "", {}}};
  EXPECT_EQ(DescribeVerdicts(verdicts, {}),
            R"(claim   verdict  reason
------  -------  -----------------
most    PASS     holds
most.1  case     points to holding
most.2  case     no value
lower   PASS

0 cells
2 claims: 2 PASS
OVERALL PASS (exit code 0)
)");
  const nlohmann::ordered_json json = VerdictsJson(verdicts, {});
  ASSERT_EQ(json.at("claims").size(), 2u);
  EXPECT_EQ(json.at("claims").at(0).at("cases").dump(),
            R"([{"claim":"most.1","reason":"points to holding"},)"
            R"({"claim":"most.2","reason":"no value"}])");
  EXPECT_FALSE(json.at("claims").at(1).contains("cases"));
}

TEST(VerdictsJson, WritesEverything) {
  EXPECT_TRUE(EqualsFile(
      VerdictsJson(Everything(), {Status::kInconclusive}).dump(2) + "\n",
      "golden/verdict/testdata/verdicts.json"));
}

}  // namespace
}  // namespace softmoe::golden
