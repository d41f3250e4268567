// SPDX-License-Identifier: Apache-2.0
//
// Compares the paper's numbers with its text.
#include <fmt/format.h>

#include "golden/paper/paper_arithmetic_parts.h"
#include "golden/paper/paper_lookup.h"

namespace softmoe::golden::internal {
namespace {

// A soft row's number is at most that of its group's sparse baseline.
void CompareWithBaseline(const Document& paper, const std::string& rule,
                         const std::string& table_id, const std::string& column,
                         const std::string& note, Checks* checks) {
  const Table& table = TableOf(paper, table_id);
  for (const Row& row : TableOf(paper, "main_results").rows) {
    if (IsSparse(row)) continue;
    const std::string baseline = BaselineOf(paper, row);
    AddAtMost(rule, table, RowOf(table, row.id), column,
              NumberOf(table, RowOf(table, baseline), column), false, note,
              "as " + baseline, checks);
  }
}

}  // namespace

// Section 4, "Computational Overhead", and the caption of T5.
void CheckSoftCosts(const Document& paper, Checks* checks) {
  CompareWithBaseline(paper, "soft_time", "compute", "gpu_hours", "N23",
                      checks);
  CompareWithBaseline(paper, "load_balance", "load_variance", "load_variance",
                      "N24", checks);
}

// Section 4: "the average compute matches a sparse MoE model with k = 2".
void CheckMeanActive(const Document& paper, Checks* checks) {
  const Table& table = TableOf(paper, "main_results");
  for (const Row& row : table.rows) {
    if (IsSparse(row)) continue;
    AddAtMost("mean_active", table, row, "infer_ae",
              NumberOf(table, row, "mean_active_experts"), false, "N25",
              "the paper's k", checks);
  }
}

// Rows of T6 and T7 that differ only in tau are adjacent, the largest tau
// first.
void CheckTauOrder(const Document& paper, Checks* checks) {
  for (const char* id : {"tau_ablation", "inference_tau_ablation"}) {
    const Table& table = TableOf(paper, id);
    for (size_t r = 1; r < table.rows.size(); ++r) {
      const Row &above = table.rows[r - 1], &row = table.rows[r];
      const size_t model = row.id.rfind('/');
      if (above.id.substr(0, above.id.rfind('/')) != row.id.substr(0, model)) {
        continue;
      }
      AddAtMost("tau_order", table, above, "ae", NumberOf(table, row, "ae"),
                false, "N4", "with " + row.id.substr(model + 1), checks);
    }
  }
}

}  // namespace softmoe::golden::internal
