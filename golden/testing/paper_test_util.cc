// SPDX-License-Identifier: Apache-2.0
#include "golden/testing/paper_test_util.h"

#include "core/files/paths.h"
#include "golden/paper/paper_lookup.h"

namespace softmoe::golden {

const Document& Paper() {
  static const Document paper =
      ReadDocument(RunfilePath("golden/paper/paper.h5"));
  return paper;
}

const Cell& At(const std::string& table, const std::string& row,
               const std::string& column) {
  const Table& found = TableOf(Paper(), table);
  return CellOf(found, RowOf(found, row), column);
}

}  // namespace softmoe::golden
