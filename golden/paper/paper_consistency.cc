// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/errors.h"
#include "golden/paper/paper_arithmetic_parts.h"
#include "golden/paper/paper_lookup.h"
#include "golden/paper/percentage_counts.h"

namespace softmoe::golden::internal {

std::string Place(const Table& table, const Row& row,
                  const std::string& column) {
  return table.id + "/" + row.id + "/" + column;
}

bool IsSparse(const Row& row) {
  return row.id.find("/sparse/") != std::string::npos;
}

Decimal Bound(const Document& paper, const Row& row) {
  const std::string text = FieldOf(paper, row, "paper.expert_budget");
  const auto number =
      Decimal::Parse(text.substr(text.find_first_of("0123456789")));
  if (!number) throw DataError("no number in the expert budget '" + text + "'");
  return *number;
}

std::string BaselineOf(const Document& paper, const Row& row) {
  return fmt::format("{}/sparse/k{}", row.id.substr(0, row.id.find('/')),
                     Bound(paper, row).Text());
}

void AddAtMost(const std::string& rule, const Table& table, const Row& row,
               const std::string& column, const Decimal& bound, bool strict,
               const std::string& note, const std::string& explanation,
               Checks* checks) {
  ArithmeticCheck check;
  check.rule = rule;
  check.place = Place(table, row, column);
  const Decimal value = NumberOf(table, row, column);
  check.printed = value.Text();
  check.computed = (strict ? "< " : "<= ") + bound.Text();
  check.consistent = strict ? value < bound : value <= bound;
  check.note = check.consistent ? "" : note;
  check.explanation = explanation;
  checks->push_back(std::move(check));
}

namespace {

// ceil(alpha k) experts or, with a learned allocation, the mean of all layers'
// caps: (1/L) sum ceil(alpha k_l) < alpha k + 1.
void AddCap(const Document& paper, const Table& table, const Row& row,
            const std::string& column, Checks* checks) {
  const Decimal k =
      Decimal::Parse(FieldOf(paper, row, "router.mean_active_experts")).value();
  const Decimal alpha =
      Decimal::Parse(FieldOf(paper, row, "router.expansion_factor")).value();
  const Decimal product = alpha * k;
  const bool learned = FieldOf(paper, row, "router.kind") == "soft_learned";
  const Decimal one(1, 0);
  const Decimal floor = product.Round(0, Rounding::kTruncate);
  const Decimal bound =
      learned ? product + one : (floor == product ? floor : floor + one);
  AddAtMost(
      "cap", table, row, column, bound, learned, "N16",
      fmt::format("{} with alpha k = {}",
                  learned ? "alpha k + 1" : "ceil(alpha k)", product.Text()),
      checks);
}

std::string NoteOnTable(const std::string& table) {
  if (table == "tau_ablation") return "N2";
  if (table == "inference_tau_ablation") return "N3";
  return "N10";
}

}  // namespace

void CheckActiveExperts(const Document& paper, Checks* checks) {
  const Table& main = TableOf(paper, "main_results");
  for (const Row& row : main.rows) {
    AddAtMost("expert_budget", main, row, "infer_ae", Bound(paper, row), false,
              "N16", "the group of the table", checks);
  }
  for (const Row& row : main.rows) {
    if (IsSparse(row)) continue;
    AddCap(paper, main, row, "train_ae", checks);
    AddCap(paper, main, row, "infer_ae", checks);
  }
  for (const char* id : {"tau_ablation", "inference_tau_ablation"}) {
    const Table& table = TableOf(paper, id);
    for (const Row& row : table.rows) AddCap(paper, table, row, "ae", checks);
  }
}

void CheckCounts(const Document& paper, Checks* checks) {
  for (const char* id :
       {"main_results", "tau_ablation", "inference_tau_ablation", "jitter"}) {
    const Table& table = TableOf(paper, id);
    for (const Row& row : table.rows) {
      for (const char* column : {"piqa", "hellaswag", "arc_e"}) {
        const Cell& cell = CellOf(table, row, column);
        if (!cell.proportion) {
          throw DataError(Place(table, row, column) + " has no item count");
        }
        const int64_t total = cell.proportion->total;
        const Decimal percent = NumberOf(table, row, column);
        // Values such as "42.5" are printed without trailing zeros.
        const std::vector<int64_t> counts =
            CountsThatPrint(percent, total, table.rounding);
        ArithmeticCheck check;
        check.rule = "count";
        check.place = Place(table, row, column);
        check.printed = cell.text;
        check.consistent = !counts.empty();
        check.computed =
            fmt::format("{} of {}", fmt::join(counts, " or "), total);
        if (counts.empty()) {
          const std::vector<int64_t> other =
              CountsThatPrint(percent, total, Rounding::kUnknown);
          check.computed = other.empty()
                               ? fmt::format("no count of {}", total)
                               : fmt::format("{} of {}, by the other rule",
                                             fmt::join(other, " or "), total);
          check.note = NoteOnTable(table.id);
        }
        check.explanation = table.rounding == Rounding::kTruncate
                                ? "cut off at the printed decimals"
                                : "rounded to the printed decimals";
        checks->push_back(std::move(check));
      }
    }
  }
}

void CheckRepeats(const Document& paper, Checks* checks) {
  const Table& main = TableOf(paper, "main_results");
  auto compare = [&](const Table& table, const Row& row,
                     const std::string& column, const Table& other,
                     const std::string& other_row,
                     const std::string& other_column, const std::string& note) {
    Add("repeat", table, row, column,
        NumberOf(other, RowOf(other, other_row), other_column), note,
        other.id + "/" + other_row + "/" + other_column, checks);
  };
  // T6 and T7 repeat rows of T1 at the tau that T1 was trained with.
  for (const char* id : {"tau_ablation", "inference_tau_ablation"}) {
    const Table& table = TableOf(paper, id);
    for (const Row& row : table.rows) {
      const std::string model = row.id.substr(0, row.id.rfind('/'));
      const Row& trained = RowOf(main, model);
      const std::string column =
          table.FindColumn("tau") >= 0 ? "tau" : "infer_tau";
      const auto tau = Decimal::Parse(FieldOf(paper, trained, "router.tau"));
      if (!tau || !(NumberOf(table, row, column) == *tau)) continue;
      compare(table, row, "ae", main, model, "infer_ae", NoteOnTable(id));
      for (const char* task : {"piqa", "hellaswag", "arc_e"}) {
        compare(table, row, task, main, model, task, NoteOnTable(id));
      }
    }
  }
  const Table& throughput = TableOf(paper, "throughput");
  const Table& compute = TableOf(paper, "compute");
  for (const Row& row : throughput.rows) {
    compare(throughput, row, "train_ae", main, row.id, "train_ae", "N6");
    compare(throughput, row, "train_time", compute, row.id, "train_time", "N6");
    compare(throughput, row, "gpu_hours", compute, row.id, "gpu_hours", "N6");
  }
}

void CheckBold(const Document& paper, Checks* checks) {
  const Table& table = TableOf(paper, "main_results");
  for (const Row& row : table.rows) {
    if (IsSparse(row)) continue;
    const Row& baseline = RowOf(table, BaselineOf(paper, row));
    for (const char* column : {"piqa", "hellaswag", "arc_e", "val_loss"}) {
      const Decimal difference =
          NumberOf(table, row, column) - NumberOf(table, baseline, column);
      const Decimal zero;
      const bool lower_wins =
          ColumnOf(table, column).direction == Direction::kLowerIsBetter;
      const bool not_worse =
          lower_wins ? difference <= zero : difference >= zero;
      const bool bold = CellOf(table, row, column).bold;
      ArithmeticCheck check;
      check.rule = "bold";
      check.place = Place(table, row, column);
      check.printed =
          CellOf(table, row, column).text + (bold ? " bold" : " plain");
      check.computed = (difference >= zero ? "+" : "") + difference.Text();
      check.consistent = bold == not_worse;
      check.note = check.consistent ? "" : "N8";
      check.explanation = "minus " + baseline.id;
      checks->push_back(std::move(check));
    }
  }
}

}  // namespace softmoe::golden::internal
