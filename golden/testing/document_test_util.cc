// SPDX-License-Identifier: Apache-2.0
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {

Document ExampleDocument() {
  Document document;
  document.provenance = {
      .origin = Origin::kOurRun,
      .source = "//:grid run smoke",
      .generator = "grid 0.2",
      .created_utc = "",
      .git_commit = "0123abc",
      .config_hash = "feed",
      .compiler = "g++ 12.2",
      .cpu = "an x86",
      .isa = "v3",
      .more = {{"seed", "1234", FieldClass::kIgnore, Known::kStated}}};
  document.fields = {
      {"model.d_model", "640", FieldClass::kMustMatch, Known::kStated},
      {"training.aux", "0.01", FieldClass::kMustMatch, Known::kAssumed},
      {"data.noise", "", FieldClass::kReport, Known::kUnknown}};
  Table main;
  main.id = "main";
  main.title = "Main results, łódź";
  main.caption = "tex line 7";
  main.rounding = Rounding::kNearest;
  main.columns = {
      {"loss", "nat/token", "mean cross-entropy", Direction::kLowerIsBetter,
       Lane::kStatistical, 2, 0.03, "ruling 2"},
      {"piqa", "percent", "accuracy", Direction::kHigherIsBetter,
       Lane::kStatistical, 2, 2.25, "2 standard errors"},
      {"params",
       "1e6 params",
       "active parameters",
       Direction::kNone,
       Lane::kExact,
       2,
       {},
       ""}};
  Row first;
  first.id = "owt/sparse/k1";
  first.labels = {"Sparse MoE", "k=1"};
  first.fields = {
      {"router.tau", "1.1", FieldClass::kMustMatch, Known::kStated}};
  first.cells = {
      {.text = "2.84",
       .value = 2.84,
       .low = 2.835,
       .high = 2.845,
       .bold = true,
       .runs = 3,
       .deviation = 0.004,
       .notes = {"N1"}},
      {.text = "61.53",
       .value = 61.53,
       .low = 61.525,
       .high = 61.535,
       .proportion = Proportion{1838, {1131}},
       .flags = {"CONFLICTS_WITH", "DERIVED"}},
      {.text = "107.74", .value = 107.74, .low = 107.735, .high = 107.745}};
  Row second;
  second.id = "owt/sparse/k2";
  second.cells = {
      {.flags = {"DIVERGED"}, .notes = {"N1", "N2"}},
      {.text = "62.63",
       .value = 62.63,
       .low = 62.625,
       .high = 62.635,
       .proportion = Proportion{1838, {}},
       .flags = {"GRIM_IMPOSSIBLE"}},
      {.text = "156.94", .value = 156.94, .low = 156.935, .high = 156.945}};
  main.rows = {first, second};
  Table empty;
  empty.id = "a_table_without_rows";  // sorts before "main", comes after it
  empty.title = "Nothing yet";
  empty.rounding = Rounding::kUnknown;
  document.tables = {main, empty};
  document.notes = {
      {"N1", "A remark.", {"main/owt/sparse/k1/loss", "claim/lower"}},
      {"N2",
       "Another.",
       {"text/abstract", "main", "main/owt/sparse/k2", "main/piqa"}}};
  document.claims = {{"lower", "k2 is lower", "owt/sparse/k2:loss", "<",
                      "owt/sparse/k1:loss", "main", "NO_DATA"},
                     {"at_most", "a number", "owt/sparse/k1:loss", "<=", "3.0",
                      "main", "HOLDS"}};
  return document;
}

}  // namespace softmoe::golden
