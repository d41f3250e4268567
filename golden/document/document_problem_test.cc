// SPDX-License-Identifier: Apache-2.0
//
// Meaningless documents are refused, with the place and the remedy in the
// message. Files of another structure: document_refuse_test.cc.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "golden/document/document.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct BadDocument {
  std::string name;
  std::function<void(Document*)> spoil;
  std::string place;   // what the message must name
  std::string remedy;  // and say
};

Cell& LossCell(Document* document) {
  return document->tables[0].rows[0].cells[0];
}
Column& Loss(Document* document) { return document->tables[0].columns[0]; }

std::vector<BadDocument> BadDocuments() {
  const std::string loss = "'/tables/main/cells/loss";
  return {
      {"nan", [](Document* d) { LossCell(d).value = kNan; },
       loss + "/value[0]' is nan", "DIVERGED"},
      {"infinity", [](Document* d) { LossCell(d).high = kInfinity; },
       loss + "/value_hi[0]' is inf", "DIVERGED"},
      {"minus_infinity", [](Document* d) { LossCell(d).low = -kInfinity; },
       loss + "/value_lo[0]' is -inf", "DIVERGED"},
      {"nan_deviation", [](Document* d) { LossCell(d).deviation = kNan; },
       loss + "/sd[0]' is nan", "store what was measured"},
      {"nan_margin", [](Document* d) { Loss(d).margin = kNan; },
       loss + "@margin' is nan", "store what was measured"},
      {"sentinel",
       [](Document* d) {
         LossCell(d) = {
             .text = "-999", .value = -999, .low = -999, .high = -999};
       },
       loss + "/value[0]' is the placeholder -999", "store what was measured"},
      {"placeholder_text", [](Document* d) { LossCell(d).text = "TBD"; },
       loss + "/text[0]' is the placeholder 'TBD'", "fill it in"},
      {"placeholder_unit", [](Document* d) { Loss(d).unit = "todo: unit"; },
       loss + "@unit' is the placeholder", "fill it in"},
      {"placeholder_source", [](Document* d) { d->provenance.source = "???"; },
       "'/provenance@source'", "fill it in"},
      {"text_is_no_number", [](Document* d) { LossCell(d).text = "2.8 (3)"; },
       loss + "/text[0]' is '2.8 (3)'", "plain decimal number"},
      {"text_of_another_value", [](Document* d) { LossCell(d).text = "2.86"; },
       loss + "/text[0]' is '2.86', but the value is 2.84", "print the value"},
      {"no_unit", [](Document* d) { Loss(d).unit = ""; },
       loss + "@unit' is empty", "fill it in"},
      {"no_metric", [](Document* d) { Loss(d).metric = ""; },
       loss + "@metric_def' is empty", "fill it in"},
      {"no_margin", [](Document* d) { Loss(d).margin.reset(); },
       loss + "@margin' is missing, but the lane is 'statistical'",
       "state the margin before any run"},
      {"no_margin_bound",
       [](Document* d) {
         Loss(d).lane = Lane::kBound;
         Loss(d).margin.reset();
       },
       loss + "@margin' is missing, but the lane is 'bound'",
       "state the margin"},
      {"zero_margin", [](Document* d) { Loss(d).margin = 0; },
       loss + "@margin' is 0", "greater than 0"},
      {"no_margin_basis", [](Document* d) { Loss(d).margin_basis = ""; },
       loss + "@margin_basis' is empty", "fill it in"},
      {"decimals", [](Document* d) { Loss(d).decimals = -1; },
       loss + "@decimals' is -1", "use 0 to 12"},
      {"outside_interval", [](Document* d) { LossCell(d).high = 2.836; },
       loss + "/value[0]' 2.84 is outside", "value_lo <= value"},
      {"empty_with_value",
       [](Document* d) { d->tables[0].rows[1].cells[0].value = 1; },
       loss + "/text[1]' is empty, but", "print the number"},
      {"no_runs", [](Document* d) { LossCell(d).runs = 0; },
       loss + "/n_runs[0]' is 0", "at least one run"},
      {"deviation_of_one_run", [](Document* d) { LossCell(d).runs = 1; },
       loss + "/sd[0]'", "needs two runs"},
      {"negative_deviation", [](Document* d) { LossCell(d).deviation = -0.1; },
       loss + "/sd[0]'", "at least 0"},
      {"count_too_large",
       [](Document* d) {
         d->tables[0].rows[0].cells[1].proportion->counts = {1839};
       },
       "'/tables/main/cells/piqa/count_N[0]'", "between 0 and the total"},
      {"counts_not_ascending",
       [](Document* d) {
         d->tables[0].rows[0].cells[1].proportion->counts = {7, 7};
       },
       "'/tables/main/cells/piqa/count_N[0]'", "counts ascend"},
      {"no_items",
       [](Document* d) {
         d->tables[0].rows[0].cells[1].proportion = Proportion{-1, {}};
       },
       "'/tables/main/cells/piqa/count_N[0]' has -1 items", "at least one"},
      {"more_than_all_items",
       [](Document* d) {
         Cell& cell = d->tables[0].rows[0].cells[1];
         cell.text = "100.01";
         cell.value = cell.low = cell.high = 100.01;
       },
       "'/tables/main/cells/piqa/count_N[0]' stands beside the value 100.01",
       "from 0 to 100"},
      {"fewer_than_no_items",
       [](Document* d) {
         Cell& cell = d->tables[0].rows[0].cells[1];
         cell.text = "-0.01";
         cell.value = cell.low = cell.high = -0.01;
       },
       "'/tables/main/cells/piqa/count_N[0]' stands beside the value -0.01",
       "from 0 to 100"},
      {"flag", [](Document* d) { LossCell(d).flags = {"odd flag"}; },
       loss + "/flags[0]'", "capital letters"},
      {"ragged_row", [](Document* d) { d->tables[0].rows[0].cells.pop_back(); },
       "'/tables/main/rows[0]' (owt/sparse/k1) has 2 cells",
       "one cell per column"},
      {"table_id", [](Document* d) { d->tables[0].id = "main/x"; },
       "has the id 'main/x'", "lower-case letters"},
      {"same_table", [](Document* d) { d->tables[1].id = "main"; },
       "'/tables/main' occurs twice", "rename"},
      {"same_column", [](Document* d) { d->tables[0].columns[1].id = "loss"; },
       loss + "' occurs twice", "rename"},
      {"same_row",
       [](Document* d) { d->tables[0].rows[1].id = "owt/sparse/k1"; },
       "'/tables/main/rows[1]' occurs twice", "rename"},
      {"row_id", [](Document* d) { d->tables[0].rows[1].id = "k: 2"; },
       "'/tables/main/rows[1]' has the id 'k: 2'", "without spaces"},
      {"no_title", [](Document* d) { d->tables[0].title = ""; },
       "'/tables/main@title' is empty", "fill it in"},
      {"field_without_value", [](Document* d) { d->fields[0].value = ""; },
       "'/fields/value[0] (model.d_model)' is empty", "fill it in"},
      {"same_field", [](Document* d) { d->fields[1].name = "model.d_model"; },
       "'/fields/name[1]' occurs twice", "rename"},
      {"enumeration", [](Document* d) { Loss(d).lane = static_cast<Lane>(17); },
       loss + "@lane'", "'exact', 'bound', 'statistical' or 'report'"},
      {"claim_without_table", [](Document* d) { d->claims[0].scope = "x"; },
       "'/claims/scope[0]' names no table: 'x'", "id of a table"},
      {"claim_about_no_cell",
       [](Document* d) { d->claims[0].left = "owt/sparse/k1:nothing"; },
       "'/claims/lhs[0]' names no cell", "ROW:COLUMN"},
      {"claim_against_nothing",
       [](Document* d) { d->claims[1].right = "three"; },
       "'/claims/rhs[1]' is neither cell nor number", "ROW:COLUMN"},
      {"claim_operator", [](Document* d) { d->claims[1].op = "!="; },
       "'/claims/op[1]' is '!='", "use <"},
      {"claim_verdict",
       [](Document* d) { d->claims[1].published_verdict = "TRUE"; },
       "'/claims/published_verdict[1]' is 'TRUE'", "HOLDS"},
      {"note_about_nothing",
       [](Document* d) { d->notes[0].concerns[0] = "main/owt/sparse/k9"; },
       "'/notes/concerns' of N1 is 'main/owt/sparse/k9'", "TABLE/ROW"},
      {"note_unknown", [](Document* d) { LossCell(d).notes = {"N99"}; },
       "refers in row owt/sparse/k1 to the note 'N99'", "add the note"},
      {"note_without_text", [](Document* d) { d->notes[1].text = ""; },
       "'/notes/text[1]' is empty", "fill it in"},
      {"nul",
       [](Document* d) { d->tables[0].caption = std::string("a\0b", 3); },
       "'/tables/main@caption' contains a NUL", "remove it"},
  };
}

TEST(FirstProblem, FindsNothingInAGoodDocument) {
  EXPECT_EQ(FirstProblem(ExampleDocument()), "");
}

TEST(FirstProblem, NamesPlaceAndRemedy) {
  for (const BadDocument& bad : BadDocuments()) {
    Document document = ExampleDocument();
    bad.spoil(&document);
    const std::string problem = FirstProblem(document);
    EXPECT_NE(problem.find(bad.place), std::string::npos)
        << bad.name << ": " << problem;
    EXPECT_NE(problem.find(bad.remedy), std::string::npos)
        << bad.name << ": " << problem;
  }
}

TEST(WriteDocument, RefusesWhatWouldNotBeRead) {
  const fs::path folder = FreshFolder("refuse_write");
  for (const BadDocument& bad : BadDocuments()) {
    Document document = ExampleDocument();
    bad.spoil(&document);
    EXPECT_THROW(WriteDocument(document, folder / "a.h5"), InternalError)
        << bad.name;
  }
  EXPECT_TRUE(FilesIn(folder).empty());
}

}  // namespace
}  // namespace softmoe::golden
