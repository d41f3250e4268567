// SPDX-License-Identifier: Apache-2.0
//
// Laws of Judge: what must never change a verdict.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

#include "golden/testing/document_test_util.h"
#include "golden/verdict/verdict.h"

namespace softmoe::golden {
namespace {

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
  RC_ASSERT(a.overall() == b.overall());
}

}  // namespace
}  // namespace softmoe::golden
