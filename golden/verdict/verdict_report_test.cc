// SPDX-License-Identifier: Apache-2.0
//
// Whole reports, letter by letter: every column, width and separator.
#include "golden/verdict/verdict_report.h"

#include <gtest/gtest.h>

#include <string>

namespace softmoe::golden {
namespace {

CellVerdict Cell(const std::string& row, const std::string& column,
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
  verdicts.overall = Status::kFail;
  verdicts.fingerprint_differences = {
      {{"model.d_model", "640", "64"}, {"main/a", "main/b", "main/c"}},
      {{"data.corpus", "owt", ""}, {"main/c"}}};
  for (int i = 0; i < 8; ++i) {
    verdicts.assumptions.push_back(
        {{"assumed." + std::to_string(i), "", std::to_string(i)}, {"main/a"}});
  }
  verdicts.reported = {{{"cpu", "x", "y"}, {"main/a", "main/b"}}};
  verdicts.remarks = {"A remark."};

  CellVerdict pass = Cell("a", "loss", Status::kPass);
  pass.golden_text = "2.84";
  pass.ours = 2.875;
  pass.difference = 0.03125;
  pass.half_width = 0.015625;
  pass.margin = 0.25;
  pass.assumptions = {6, 0, 2, 1};
  pass.notes = {"N1", "N2"};
  CellVerdict fail = Cell("a", "piqa", Status::kFail);
  fail.golden_text = "61.5";
  fail.ours = 61.5;
  fail.difference = 0;
  fail.reason = "outside";
  fail.assumptions = {3, 4};
  CellVerdict missing = Cell("b", "loss", Status::kUnsupported);
  missing.golden_text = "3";
  missing.reason = "no value";
  missing.notes = {"N3"};
  missing.assumptions = {0};
  CellVerdict open = Cell("b", "piqa", Status::kInconclusive);
  open.golden_text = "60";
  open.ours = 1234567.5;
  open.difference = -1234507.5;
  open.reason = "4 runs do not decide; 9 would";
  open.runs_needed = 9;
  CellVerdict mistrusted = Cell("c", "loss", Status::kMistrusted);
  mistrusted.golden_text = "1";
  mistrusted.ours = 1;
  mistrusted.difference = 0.0009765625;
  mistrusted.reason = "equal bits";
  mistrusted.assumptions = {7};
  verdicts.cells = {pass, fail, missing, open, mistrusted};
  CellVerdict recorded = Cell("c", "hours", Status::kPass);
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
  EXPECT_EQ(DescribeVerdicts(Everything(),
                             {Status::kInconclusive, Status::kUnsupported}),
            R"(Set-up that differs (must match):
  model.d_model: 640 in the golden, 64 here (main/a and 2 more)
  data.corpus: owt in the golden, not said here (main/c)

Assumptions: the golden leaves these open.
  A1 assumed.0: not known in the golden, 0 here (main/a)
  A2 assumed.1: not known in the golden, 1 here (main/a)
  A3 assumed.2: not known in the golden, 2 here (main/a)
  A4 assumed.3: not known in the golden, 3 here (main/a)
  A5 assumed.4: not known in the golden, 4 here (main/a)
  A6 assumed.5: not known in the golden, 5 here (main/a)
  A7 assumed.6: not known in the golden, 6 here (main/a)
  A8 assumed.7: not known in the golden, 7 here (main/a)

For the record:
  cpu: x in the golden, y here (main/a and 1 more)
  A remark.

row     column  golden     ours      delta     +-  margin  verdict       reason
------  ------  ------  -------  ---------  -----  ------  ------------  --------------------------------------
main/a  loss      2.84    2.875    +0.0312  0.016    0.25  PASS          under assumptions A1-A3, A7; see N1 N2
main/a  piqa      61.5     61.5         +0      -       -  FAIL          outside; under assumptions A4-A5
main/b  loss         3        -          -      -       -  UNSUPPORTED   no value; see N3
main/b  piqa        60  1234568  -1.23e+06      -       -  INCONCLUSIVE  4 runs do not decide; 9 would
main/c  loss         1        1  +0.000977      -       -  MISTRUSTED    equal bits; under assumptions A8

row     column  golden  ours  delta  +-  margin  verdict   reason
------  ------  ------  ----  -----  --  ------  --------  ------
main/c  hours        7     8     +1   -       -  recorded  see N4

claim   verdict       reason
------  ------------  ------------------------------
lower   PASS          holds; under assumptions A2-A3
higher  INCONCLUSIVE  leans
same    PASS          under assumptions A1

5 cells: 1 FAIL, 1 INCONCLUSIVE, 1 MISTRUSTED, 1 PASS, 1 UNSUPPORTED
3 claims: 1 INCONCLUSIVE, 2 PASS
allowed: INCONCLUSIVE, UNSUPPORTED
OVERALL FAIL (exit code 1)
)");
}

TEST(DescribeVerdicts, LeavesOutWhatThereIsNot) {
  Verdicts verdicts;
  verdicts.overall = Status::kNotComparable;
  EXPECT_EQ(
      DescribeVerdicts(verdicts, {}),
      R"(No table and row of the golden is in the results: nothing to compare.
0 cells
0 claims
OVERALL NOT_COMPARABLE (exit code 3)
)");
  verdicts.recorded = Everything().recorded;
  verdicts.overall = Status::kInconclusive;
  EXPECT_EQ(DescribeVerdicts(verdicts, {Status::kMistrusted}),
            R"(row     column  golden  ours  delta  +-  margin  verdict   reason
------  ------  ------  ----  -----  --  ------  --------  ------
main/c  hours        7     8     +1   -       -  recorded  see N4

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

TEST(VerdictsJson, WritesEverything) {
  EXPECT_EQ(VerdictsJson(Everything(), {Status::kInconclusive}), R"json({
  "overall": "FAIL",
  "exit_code": 1,
  "allowed": [
    "INCONCLUSIVE"
  ],
  "fingerprint_differences": [
    "model.d_model: 640 in the golden, 64 here (main/a and 2 more)",
    "data.corpus: owt in the golden, not said here (main/c)"
  ],
  "assumptions": [
    "A1 assumed.0: not known in the golden, 0 here (main/a)",
    "A2 assumed.1: not known in the golden, 1 here (main/a)",
    "A3 assumed.2: not known in the golden, 2 here (main/a)",
    "A4 assumed.3: not known in the golden, 3 here (main/a)",
    "A5 assumed.4: not known in the golden, 4 here (main/a)",
    "A6 assumed.5: not known in the golden, 5 here (main/a)",
    "A7 assumed.6: not known in the golden, 6 here (main/a)",
    "A8 assumed.7: not known in the golden, 7 here (main/a)"
  ],
  "remarks": [
    "cpu: x in the golden, y here (main/a and 1 more)",
    "A remark."
  ],
  "cells": [
    {
      "table": "main",
      "row": "a",
      "column": "loss",
      "status": "PASS",
      "reason": "under assumptions A1-A3, A7",
      "golden": "2.84",
      "ours": 2.875,
      "difference": 0.03125,
      "half_width": 0.015625,
      "margin": 0.25,
      "runs_needed": 0,
      "assumptions": [
        "assumed.6",
        "assumed.0",
        "assumed.2",
        "assumed.1"
      ],
      "notes": [
        "N1",
        "N2"
      ]
    },
    {
      "table": "main",
      "row": "a",
      "column": "piqa",
      "status": "FAIL",
      "reason": "outside; under assumptions A4-A5",
      "golden": "61.5",
      "ours": 61.5,
      "difference": 0.0,
      "half_width": 0.0,
      "margin": 0.0,
      "runs_needed": 0,
      "assumptions": [
        "assumed.3",
        "assumed.4"
      ],
      "notes": []
    },
    {
      "table": "main",
      "row": "b",
      "column": "loss",
      "status": "UNSUPPORTED",
      "reason": "no value",
      "golden": "3",
      "half_width": 0.0,
      "margin": 0.0,
      "runs_needed": 0,
      "assumptions": [
        "assumed.0"
      ],
      "notes": [
        "N3"
      ]
    },
    {
      "table": "main",
      "row": "b",
      "column": "piqa",
      "status": "INCONCLUSIVE",
      "reason": "4 runs do not decide; 9 would",
      "golden": "60",
      "ours": 1234567.5,
      "difference": -1234507.5,
      "half_width": 0.0,
      "margin": 0.0,
      "runs_needed": 9,
      "assumptions": [],
      "notes": []
    },
    {
      "table": "main",
      "row": "c",
      "column": "loss",
      "status": "MISTRUSTED",
      "reason": "equal bits; under assumptions A8",
      "golden": "1",
      "ours": 1.0,
      "difference": 0.0009765625,
      "half_width": 0.0,
      "margin": 0.0,
      "runs_needed": 0,
      "assumptions": [
        "assumed.7"
      ],
      "notes": []
    }
  ],
  "recorded": [
    {
      "table": "main",
      "row": "c",
      "column": "hours",
      "status": "RECORDED",
      "reason": "recorded, not judged",
      "golden": "7",
      "ours": 8.0,
      "difference": 1.0,
      "half_width": 0.0,
      "margin": 0.0,
      "runs_needed": 0,
      "assumptions": [],
      "notes": [
        "N4"
      ]
    }
  ],
  "claims": [
    {
      "claim": "lower",
      "status": "PASS",
      "reason": "holds; under assumptions A2-A3"
    },
    {
      "claim": "higher",
      "status": "INCONCLUSIVE",
      "reason": "leans"
    },
    {
      "claim": "same",
      "status": "PASS",
      "reason": "under assumptions A1"
    }
  ]
}
)json");
}

}  // namespace
}  // namespace softmoe::golden
