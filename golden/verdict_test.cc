// SPDX-License-Identifier: Apache-2.0
//
// Judge on imitations of a grid's results: the paper's own rows, with runs and
// deviations that a grid would report.
#include "golden/verdict.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/runfiles.h"
#include "golden/document.h"
#include "golden/statistics.h"

namespace softmoe::golden {
namespace {

const Document& Paper() {
  static const Document paper = ReadDocument(RunfilePath("golden/paper.h5"));
  return paper;
}

void SetValue(Cell* cell, double value) {
  cell->text = fmt::format("{:.4f}", value);
  cell->value = cell->low = cell->high = value;
}

// What a grid that reproduces the paper's table to the digit would hand in:
// `runs` runs of each row with a standard deviation of `spread` margins.
Document Reproduction(int64_t runs, double spread) {
  Document results;
  results.provenance = {.origin = Origin::kOurRun,
                        .source = "verdict_test",
                        .generator = "verdict_test",
                        .created_utc = "",
                        .git_commit = "",
                        .config_hash = "",
                        .compiler = "",
                        .cpu = "",
                        .isa = "",
                        .more = {}};
  results.fields = Paper().fields;
  Table table = *Paper().FindTable("main_results");
  auto state = [](Field* field) {
    if (field->value.empty()) field->value = "something";
    field->known = Known::kStated;
  };
  for (Field& field : results.fields) state(&field);
  for (Row& row : table.rows) {
    for (Field& field : row.fields) state(&field);
    for (size_t c = 0; c < row.cells.size(); ++c) {
      Cell& cell = row.cells[c];
      cell.notes.clear();
      cell.flags.clear();
      cell.bold = false;
      cell.runs = runs;
      if (cell.empty()) continue;
      SetValue(&cell, cell.value);
      const bool exact = c < 4 && row.id.find("/sparse/") != std::string::npos;
      if (runs > 1) {
        cell.deviation =
            exact ? 0 : spread * table.columns[c].margin.value_or(0);
      }
    }
  }
  results.tables = {table};
  return results;
}

Cell& At(Document* document, const std::string& row,
         const std::string& column) {
  Table& table = document->tables[0];
  const auto c = static_cast<size_t>(table.FindColumn(column));
  for (Row& candidate : table.rows) {
    if (candidate.id == row) return candidate.cells[c];
  }
  throw InternalError("no row " + row);
}

const CellVerdict& Verdict(const Verdicts& verdicts, const std::string& row,
                           const std::string& column) {
  for (const CellVerdict& cell : verdicts.cells) {
    if (cell.row == row && cell.column == column) return cell;
  }
  throw InternalError("no verdict on " + row + " " + column);
}

const ClaimVerdict& Claimed(const Verdicts& verdicts, const std::string& id) {
  for (const ClaimVerdict& claim : verdicts.claims) {
    if (claim.claim == id) return claim;
  }
  throw InternalError("no verdict on claim " + id);
}

int64_t Count(const Verdicts& verdicts, Status status) {
  return std::count_if(
      verdicts.cells.begin(), verdicts.cells.end(),
      [status](const CellVerdict& cell) { return cell.status == status; });
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Judge, APerfectReproductionPassesUnderAssumptions) {
  const Verdicts verdicts = Judge(Reproduction(5, 0.05), Paper());
  ASSERT_EQ(verdicts.cells.size(), 18u * 9 - 8);  // 8 empty expansion factors
  for (const CellVerdict& cell : verdicts.cells) {
    EXPECT_EQ(cell.status, Status::kPass)
        << cell.row << " " << cell.column << ": " << cell.reason;
    EXPECT_FALSE(cell.assumptions.empty());
    EXPECT_TRUE(Contains(cell.reason, "assumption")) << cell.reason;
  }
  EXPECT_TRUE(verdicts.fingerprint_differences.empty());
  // tau of C4 is one of the assumptions, tau of OWT SoftMoE* is not.
  const auto& open = Verdict(verdicts, "c4/softmoe_star/k1/a4", "val_loss");
  const auto& stated = Verdict(verdicts, "owt/softmoe_star/k1/a4", "val_loss");
  auto assumes = [](const CellVerdict& cell, const std::string& field) {
    return std::count(cell.assumptions.begin(), cell.assumptions.end(), field) >
           0;
  };
  EXPECT_TRUE(assumes(open, "router.tau"));
  EXPECT_FALSE(assumes(stated, "router.tau"));
  EXPECT_TRUE(verdicts.assumptions[0].starts_with("A1 "));
  // Sparse rows stand under fewer assumptions; the labels are those of the
  // list.
  EXPECT_EQ(Verdict(verdicts, "owt/sparse/k1", "val_loss").reason,
            "under assumptions A1-A12");
  const std::string& tau_line = *std::find_if(
      verdicts.assumptions.begin(), verdicts.assumptions.end(),
      [](const std::string& line) {
        return Contains(line, "(main_results/c4/softmoe_star/k1/a4");
      });
  const std::string label = tau_line.substr(0, tau_line.find(' '));
  EXPECT_TRUE(Contains(tau_line, label + " router.tau: 1.1 in the golden"));
  EXPECT_TRUE(Contains(open.reason, label)) << open.reason;
  EXPECT_FALSE(Contains(stated.reason, label)) << stated.reason;
}

TEST(Judge, RowsThatAreNotThereAreNotJudged) {
  Document results = Reproduction(3, 0.05);
  results.tables[0].rows.resize(2);
  const Verdicts verdicts = Judge(results, Paper());
  EXPECT_EQ(verdicts.cells.size(), 2u * 8);
  results.tables[0].id = "another_table";
  const Verdicts nothing = Judge(results, Paper());
  EXPECT_TRUE(nothing.cells.empty());
  EXPECT_EQ(nothing.overall, Status::kNotComparable);
  EXPECT_EQ(nothing.exit_code(), ExitCode::kNotComparable);
}

TEST(Judge, AnotherModelIsNotComparableWhateverItsNumbers) {
  Document results = Reproduction(5, 0.05);
  for (Field& field : results.fields) {
    if (field.name == "model.d_model") field.value = "64";
  }
  At(&results, "owt/sparse/k1", "val_loss").value += 1;
  At(&results, "owt/sparse/k1", "val_loss").high += 1;
  const Verdicts verdicts = Judge(results, Paper());
  for (const CellVerdict& cell : verdicts.cells) {
    EXPECT_EQ(cell.status, Status::kNotComparable);
    EXPECT_EQ(cell.reason, "differs in model.d_model");
  }
  for (const ClaimVerdict& claim : verdicts.claims) {
    EXPECT_EQ(claim.status, Status::kNotComparable) << claim.claim;
  }
  ASSERT_EQ(verdicts.fingerprint_differences.size(), 1u);
  EXPECT_EQ(verdicts.fingerprint_differences[0],
            "model.d_model: 640 in the golden, 64 here "
            "(main_results/owt/sparse/k1 and 17 more)");
  EXPECT_EQ(verdicts.exit_code(), ExitCode::kNotComparable);
}

TEST(Judge, CalibratedTauIsNotComparableOnlyWhereTauIsStated) {
  Document results = Reproduction(5, 0.05);
  for (Row& row : results.tables[0].rows) {
    for (Field& field : row.fields) {
      if (field.name == "router.tau") field.value = "calibrated";
    }
  }
  const Verdicts verdicts = Judge(results, Paper());
  EXPECT_EQ(Verdict(verdicts, "owt/softmoe_star/k1/a4", "val_loss").status,
            Status::kNotComparable);
  EXPECT_EQ(Verdict(verdicts, "c4/softmoe_star/k1/a4", "val_loss").status,
            Status::kPass);
  EXPECT_EQ(Verdict(verdicts, "owt/sparse/k1", "val_loss").status,
            Status::kPass);
}

TEST(Judge, OneRunIsInconclusive) {
  const Verdicts verdicts = Judge(Reproduction(1, 0), Paper());
  const CellVerdict& loss = Verdict(verdicts, "owt/sparse/k1", "val_loss");
  EXPECT_EQ(loss.status, Status::kInconclusive);
  EXPECT_EQ(loss.runs_needed, 2);
  EXPECT_TRUE(Contains(loss.reason, "seed noise is unknown")) << loss.reason;
  EXPECT_EQ(verdicts.exit_code(), ExitCode::kInconclusive);
  EXPECT_EQ(verdicts.exit_code({Status::kInconclusive}), ExitCode::kDone);
}

// Seeds of other rows of the same corpus tell the noise, those of another
// corpus do not.
TEST(Judge, PoolsSeedNoiseWithinACorpus) {
  Document results = Reproduction(1, 0);
  for (const char* row : {"c4/sparse/k2", "c4/sparse/k3", "c4/sparse/k4"}) {
    Cell& cell = At(&results, row, "val_loss");
    cell.runs = 5;
    cell.deviation = 0.001;
  }
  const Verdicts verdicts = Judge(results, Paper());
  EXPECT_EQ(Verdict(verdicts, "c4/softmoe/k2/a2", "val_loss").status,
            Status::kPass);
  EXPECT_EQ(Verdict(verdicts, "owt/softmoe/k2/a2", "val_loss").status,
            Status::kInconclusive);
}

TEST(Judge, FarOutFails) {
  Document results = Reproduction(5, 0.05);
  SetValue(&At(&results, "owt/softmoe/k2/a2", "val_loss"), 2.84);
  const Verdicts verdicts = Judge(results, Paper());
  const CellVerdict& cell = Verdict(verdicts, "owt/softmoe/k2/a2", "val_loss");
  EXPECT_EQ(cell.status, Status::kFail) << cell.reason;
  EXPECT_NEAR(cell.difference, 0.10, 1e-12);
  EXPECT_EQ(cell.golden_text, "2.74");
  EXPECT_EQ(cell.margin, 0.03);
  EXPECT_EQ(Count(verdicts, Status::kFail), 1);
  EXPECT_EQ(verdicts.overall, Status::kFail);
  EXPECT_EQ(verdicts.exit_code(), ExitCode::kFailed);
  EXPECT_NE(verdicts.exit_code({Status::kFail}), ExitCode::kFailed);
}

// A single cell at p = 0.01 fails alone, but not as one of 108 comparisons.
TEST(Judge, HolmKeepsAFewChanceOutliersFromFailing) {
  Document alone = Reproduction(3, 0.2);
  const Cell golden_cell =
      Paper().FindTable("main_results")->FindRow("owt/sparse/k2")->cells[8];
  // Excess over the margin of t_{0.99} standard errors, at 18 degrees of
  // freedom (nine rows of three runs).
  const double error = 0.2 * 0.03 * std::sqrt(1.0 / 3 + 1);
  const double value =
      golden_cell.high + 0.03 + StudentQuantile(0.99, 18) * error;
  SetValue(&At(&alone, "owt/sparse/k2", "val_loss"), value);
  const Verdicts all = Judge(alone, Paper());
  const CellVerdict& corrected = Verdict(all, "owt/sparse/k2", "val_loss");
  EXPECT_EQ(corrected.status, Status::kInconclusive);
  EXPECT_TRUE(Contains(corrected.reason, "Holm")) << corrected.reason;
  EXPECT_TRUE(Contains(corrected.reason, "p = 0.01")) << corrected.reason;

  Document golden = Paper();
  for (Table& table : golden.tables) {
    for (Row& row : table.rows) {
      for (size_t c = 0; c < row.cells.size(); ++c) {
        const bool keep =
            row.id == "owt/sparse/k2" && table.columns[c].id == "val_loss";
        if (!keep) row.cells[c] = {};
      }
    }
  }
  golden.claims.clear();
  const Verdicts one = Judge(alone, golden);
  EXPECT_EQ(Verdict(one, "owt/sparse/k2", "val_loss").status, Status::kFail);
}

TEST(Judge, EqualRunsAreMistrusted) {
  Document results = Reproduction(3, 0);
  for (Row& row : results.tables[0].rows) {
    SetValue(&At(&results, row.id, "val_loss"),
             At(&results, row.id, "val_loss").value + 0.001);
  }
  const Verdicts verdicts = Judge(results, Paper());
  EXPECT_EQ(Verdict(verdicts, "owt/sparse/k1", "val_loss").status,
            Status::kMistrusted);
  EXPECT_EQ(Verdict(verdicts, "owt/sparse/k1", "infer_ae").status,
            Status::kPass);
  EXPECT_EQ(verdicts.exit_code({Status::kInconclusive}), ExitCode::kMistrusted);
}

TEST(Judge, MissingValuesAreSaidAndDivergedRunsFail) {
  Document results = Reproduction(5, 0.05);
  Cell empty;
  At(&results, "owt/sparse/k1", "piqa") = empty;
  empty.flags = {"DIVERGED"};
  At(&results, "owt/sparse/k2", "val_loss") = empty;
  const Verdicts verdicts = Judge(results, Paper());
  EXPECT_EQ(Verdict(verdicts, "owt/sparse/k1", "piqa").status,
            Status::kUnsupported);
  EXPECT_EQ(Verdict(verdicts, "owt/sparse/k2", "val_loss").status,
            Status::kFail);
}

TEST(Judge, AnotherUnitIsNotComparable) {
  Document results = Reproduction(5, 0.05);
  Table& table = results.tables[0];
  table.columns[static_cast<size_t>(table.FindColumn("val_loss"))].unit =
      "bit/token";
  const CellVerdict cell =
      Verdict(Judge(results, Paper()), "owt/sparse/k1", "val_loss");
  EXPECT_EQ(cell.status, Status::kNotComparable);
  EXPECT_EQ(cell.reason.substr(0, 52),
            "the golden is in nat/token, the results in bit/token");
}

Document ModelSize(double billions) {
  Document results = Reproduction(1, 0);
  Table table = *Paper().FindTable("model_size");
  for (Cell& cell : table.rows[0].cells) cell.notes.clear();
  SetValue(&table.rows[0].cells[0], billions);
  results.tables = {table};
  return results;
}

TEST(Judge, ExactCellsMustPrintAlike) {
  // design.md, ruling 17: 1,631,409,280, "1.631B".
  EXPECT_EQ(Judge(ModelSize(1.631409280), Paper()).overall, Status::kPass);
  EXPECT_EQ(Judge(ModelSize(1.6316), Paper()).overall, Status::kFail);
  EXPECT_EQ(Judge(ModelSize(1.6303), Paper()).overall, Status::kFail);
}

TEST(Judge, ReportColumnsAreRecordedAndNeverJudged) {
  Document results = Reproduction(3, 0.05);
  Table table = *Paper().FindTable("compute");
  for (Row& row : table.rows) {
    row.fields.clear();
    for (const Row& other : results.tables[0].rows) {
      if (other.id == row.id) row.fields = other.fields;
    }
    for (Cell& cell : row.cells) cell.notes.clear();
    SetValue(&row.cells[0], row.cells[0].value * 7);
  }
  results.tables = {table};
  const Verdicts verdicts = Judge(results, Paper());
  EXPECT_EQ(verdicts.recorded.size(), 18u * 3);
  EXPECT_TRUE(verdicts.cells.empty());
  EXPECT_EQ(verdicts.overall, Status::kInconclusive);  // nothing was judged
}

// --- Claims
// ---------------------------------------------------------------------

// The paper with every field stated: strict claims are not capped.
Document ClosedPaper() {
  Document paper = Paper();
  auto state = [](Field* field) {
    if (field->value.empty()) field->value = "something";
    field->known = Known::kStated;
  };
  for (Field& field : paper.fields) state(&field);
  for (Table& table : paper.tables) {
    for (Row& row : table.rows) {
      for (Field& field : row.fields) state(&field);
    }
  }
  return paper;
}

TEST(Judge, ClaimsAreTestedOnOurRuns) {
  const Verdicts verdicts = Judge(Reproduction(8, 0.03), ClosedPaper());
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.1").status, Status::kPass);
  // 2.21 is not below 2.20 (N8); 2.75 against 2.75 decides nothing.
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.6").status, Status::kFail);
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.3").status,
            Status::kInconclusive);
  EXPECT_TRUE(Contains(Claimed(verdicts, "star_lower_loss.6").reason,
                       "the published numbers: REFUTED"));
  EXPECT_EQ(Claimed(verdicts, "learned_more_experts.1").status, Status::kPass);
  // 0.06 points of PIQA are far within the noise of 1838 items.
  EXPECT_EQ(Claimed(verdicts, "best_piqa_owt.6").status, Status::kInconclusive);
}

TEST(Judge, StrictClaimsAreCappedUnderOpenFields) {
  const Verdicts verdicts = Judge(Reproduction(8, 0.03), Paper());
  const ClaimVerdict& strict = Claimed(verdicts, "star_lower_loss.1");
  EXPECT_EQ(strict.status, Status::kInconclusive);
  EXPECT_TRUE(Contains(strict.reason, "our runs say that it holds"))
      << strict.reason;
  EXPECT_EQ(Claimed(verdicts, "learned_loss_not_higher.1").status,
            Status::kPass);
}

TEST(Judge, ClaimsOfOneRunAreInconclusive) {
  const Verdicts verdicts = Judge(Reproduction(1, 0), ClosedPaper());
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.1").status,
            Status::kInconclusive);
}

Document Allocation(double share, double budget, double least) {
  Document results = Reproduction(3, 0.05);
  Table table = *Paper().FindTable("allocation");
  for (Row& row : table.rows) {
    for (const Row& other : results.tables[0].rows) {
      if (other.id == row.id) row.fields = other.fields;
    }
    const double k = row.id.find("k1.5") != std::string::npos ? 15 : 20;
    const std::vector<double> values = {share, k + budget, least, 0.8};
    for (size_t c = 0; c < values.size(); ++c) {
      SetValue(&row.cells[c], values[c]);
      row.cells[c].runs = 3;
      row.cells[c].deviation = c == 0 || c == 3 ? 0.01 : 0.0;
    }
  }
  results.tables = {table};
  return results;
}

TEST(Judge, ClaimsAboutFiguresTakeOurDataThoughThePaperHasNone) {
  const Verdicts good = Judge(Allocation(0.5, 0, 1), Paper());
  for (const char* id : {"top3_share.1", "top3_share_at_most.4",
                         "budget_is_kept.2", "at_least_one.3"}) {
    EXPECT_EQ(Claimed(good, id).status, Status::kPass)
        << id << ": " << Claimed(good, id).reason;
  }
  EXPECT_TRUE(Contains(Claimed(good, "top3_share.1").reason, "NO_DATA"));
  const Verdicts bad = Judge(Allocation(0.3, 0.01, 0.99), Paper());
  for (const char* id :
       {"top3_share.1", "budget_is_kept.2", "at_least_one.3"}) {
    EXPECT_EQ(Claimed(bad, id).status, Status::kFail) << id;
  }
}

// --- Order of severity and laws
// -----------------------------------------------------

TEST(Worse, FollowsTheOrderOfSeverity) {
  const std::vector<Status> kOrder = {Status::kFail, Status::kMistrusted,
                                      Status::kNotComparable,
                                      Status::kInconclusive, Status::kPass};
  const std::vector<int> kCodes = {1, 7, 3, 4, 0};
  for (size_t i = 0; i < kOrder.size(); ++i) {
    EXPECT_EQ(static_cast<int>(ExitCodeOf(kOrder[i])), kCodes[i]);
    for (size_t j = i; j < kOrder.size(); ++j) {
      EXPECT_EQ(Worse(kOrder[i], kOrder[j]), kOrder[i]);
      EXPECT_EQ(Worse(kOrder[j], kOrder[i]), kOrder[i]);
    }
  }
  EXPECT_EQ(ExitCodeOf(Status::kUnsupported), ExitCode::kInconclusive);
}

Document RandomResults(double spread) {
  Document results = Reproduction(*rc::gen::inRange<int64_t>(2, 6), spread);
  // Three rows of each corpus: enough for pooling and for claims.
  auto& rows = results.tables[0].rows;
  rows.erase(rows.begin() + 12, rows.end());
  rows.erase(rows.begin(), rows.begin() + 6);
  for (Row& row : results.tables[0].rows) {
    for (const char* column : {"val_loss", "infer_ae", "piqa"}) {
      Cell& cell = At(&results, row.id, column);
      const double margin = results.tables[0]
                                .columns[static_cast<size_t>(
                                    results.tables[0].FindColumn(column))]
                                .margin.value();
      SetValue(&cell, cell.value + margin * *rc::gen::inRange(-30, 31) / 10.0);
    }
  }
  return results;
}

using StatusCheck = std::function<bool(Status before, Status after)>;

void CheckAllCells(const Verdicts& before, const Verdicts& after,
                   const StatusCheck& allowed) {
  RC_ASSERT(before.cells.size() == after.cells.size());
  for (size_t i = 0; i < before.cells.size(); ++i) {
    RC_ASSERT(allowed(before.cells[i].status, after.cells[i].status));
  }
}

RC_GTEST_PROP(JudgeProperty, ALargerMarginNeverTurnsPassIntoFail, ()) {
  const Document results = RandomResults(*rc::gen::inRange(1, 40) / 100.0);
  Document wider = Paper();
  const double factor = 1 + *rc::gen::inRange(1, 30) / 10.0;
  for (Table& table : wider.tables) {
    for (Column& column : table.columns) {
      if (column.margin) *column.margin *= factor;
    }
  }
  CheckAllCells(Judge(results, Paper()), Judge(results, wider),
                [](Status before, Status after) {
                  if (before == Status::kPass) return after == Status::kPass;
                  return after != Status::kFail || before == Status::kFail;
                });
}

RC_GTEST_PROP(JudgeProperty, MoreNoiseNeverTurnsFailIntoPass, ()) {
  const Document results = RandomResults(*rc::gen::inRange(1, 40) / 100.0);
  Document noisier = results;
  const double factor = 1 + *rc::gen::inRange(1, 30) / 10.0;
  for (Row& row : noisier.tables[0].rows) {
    for (Cell& cell : row.cells) {
      if (cell.deviation) *cell.deviation *= factor;
    }
  }
  CheckAllCells(Judge(results, Paper()), Judge(noisier, Paper()),
                [](Status before, Status after) {
                  return after == before || after == Status::kInconclusive;
                });
}

RC_GTEST_PROP(JudgeProperty, TheOrderOfRowsDoesNotMatter, ()) {
  const Document results = RandomResults(0.1);
  Document shuffled = results;
  std::reverse(shuffled.tables[0].rows.begin(), shuffled.tables[0].rows.end());
  const Verdicts a = Judge(results, Paper()), b = Judge(shuffled, Paper());
  CheckAllCells(a, b, [](Status x, Status y) { return x == y; });
  RC_ASSERT(a.overall == b.overall);
}

}  // namespace
}  // namespace softmoe::golden
