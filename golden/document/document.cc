// SPDX-License-Identifier: Apache-2.0
#include "golden/document/document.h"

namespace softmoe::golden {

const Row* Table::FindRow(const std::string& row_id) const {
  for (const Row& row : rows) {
    if (row.id == row_id) return &row;
  }
  return nullptr;
}

int64_t Table::FindColumn(const std::string& column_id) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].id == column_id) return static_cast<int64_t>(i);
  }
  return -1;
}

const Table* Document::FindTable(const std::string& table_id) const {
  for (const Table& table : tables) {
    if (table.id == table_id) return &table;
  }
  return nullptr;
}

}  // namespace softmoe::golden
