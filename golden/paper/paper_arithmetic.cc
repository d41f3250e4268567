// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/paper_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/errors.h"
#include "golden/document/decimal.h"
#include "golden/paper/paper_lookup.h"

namespace softmoe::golden {
namespace {

using Checks = std::vector<ArithmeticCheck>;

// "main_results/owt/sparse/k1/val_loss".
std::string Place(const Table& table, const Row& row,
                  const std::string& column) {
  return table.id + "/" + row.id + "/" + column;
}

bool IsSparse(const Row& row) {
  return row.id.find("/sparse/") != std::string::npos;
}

// The bound on active experts for a row of T1: "<=2" -> 2.
Decimal Bound(const Document& paper, const Row& row) {
  const std::string text = FieldOf(paper, row, "paper.expert_budget");
  const size_t digit = text.find_first_of("0123456789");
  const auto number = Decimal::Parse(text.substr(std::min(digit, text.size())));
  if (!number) throw DataError("no number in the expert budget '" + text + "'");
  return *number;
}

// The id of the Sparse MoE row with the same corpus and group in T1.
std::string BaselineOf(const Document& paper, const Row& row) {
  return fmt::format("{}/sparse/k{}", row.id.substr(0, row.id.find('/')),
                     Bound(paper, row).Text());
}

// The zero-shot accuracies: what a table has in percent.
std::vector<std::string> AccuracyColumns(const Table& table) {
  std::vector<std::string> ids;
  for (const Column& column : table.columns) {
    if (column.unit == "percent") ids.push_back(column.id);
  }
  return ids;
}

std::string NoteOnTable(const std::string& table) {
  if (table == "tau_ablation") return "N2";
  if (table == "inference_tau_ablation") return "N3";
  return "N10";
}

// Appends `check`, with `note` if it is inconsistent.
void Append(ArithmeticCheck check, const std::string& note, Checks* checks) {
  if (!check.consistent) check.note = note;
  checks->push_back(std::move(check));
}

// Appends "the printed number equals `computed`, by value".
void Add(const std::string& rule, const Table& table, const Row& row,
         const std::string& column, const Decimal& computed,
         const std::string& note, const std::string& explanation,
         Checks* checks) {
  Append({.rule = rule,
          .place = Place(table, row, column),
          .printed = CellOf(table, row, column).text,
          .computed = computed.Text(),
          .consistent = NumberOf(table, row, column) == computed,
          .explanation = explanation},
         note, checks);
}

// Appends "the printed number is at most `bound`", or less if `strict`.
void AddAtMost(const std::string& rule, const Table& table, const Row& row,
               const std::string& column, const Decimal& bound, bool strict,
               const std::string& note, const std::string& explanation,
               Checks* checks) {
  const Decimal value = NumberOf(table, row, column);
  Append({.rule = rule,
          .place = Place(table, row, column),
          .printed = value.Text(),
          .computed = (strict ? "< " : "<= ") + bound.Text(),
          .consistent = strict ? value < bound : value <= bound,
          .explanation = explanation},
         note, checks);
}

// ---- Derived columns.

Decimal D(const char* text) { return *Decimal::Parse(text); }

// Returns the units of `number`, rounded to `decimals` digits. Throws DataError
// unless they are above 0, as an operand of a division or a count must be.
int64_t Positive(const Decimal& number, int decimals, Rounding rule,
                 const std::string& place) {
  const int64_t units = number.Round(decimals, rule).units();
  if (units > 0) return units;
  throw DataError(fmt::format("{} is {}; it must be at least {}", place,
                              number.Text(), Decimal(1, decimals).Text()));
}

int64_t Integer(const Decimal& number, const std::string& place) {
  return Positive(number, 0, Rounding::kTruncate, place);
}

int64_t Integer(const Table& table, const Row& row, const std::string& column) {
  return Integer(NumberOf(table, row, column), Place(table, row, column));
}

int64_t Integer(const Document& paper, const Row& row,
                const std::string& field) {
  return Integer(FieldNumber(paper, row, field),
                 fmt::format("field {} of row {}", field, row.id));
}

void CheckParameters(const Document& paper, Checks* checks) {
  const Table& main = TableOf(paper, "main_results");
  for (const Row& row : main.rows) {
    const Decimal ae = NumberOf(main, row, "infer_ae");
    const Decimal law = D("58.54464") + D("49.2") * ae;
    Add("active_params_law", main, row, "active_params",
        law.Round(2, Rounding::kNearest), "N1",
        "58.54464 + 49.2 x " + ae.Text() + " = " + law.Text(), checks);
  }
  for (const Row& row : main.rows) {
    const Decimal ae = NumberOf(main, row, "infer_ae");
    const Decimal exact = D("58.54528") + D("49.152") * ae;
    Add("active_params_true", main, row, "active_params",
        exact.Round(2, Rounding::kNearest), "N1",
        "58.54528 + 49.152 x " + ae.Text() + " = " + exact.Text(), checks);
  }
  const Table& size = TableOf(paper, "model_size");
  const Row& all = RowOf(size, "all");
  const int64_t layers = Integer(size, all, "blocks");
  const int64_t experts = Integer(size, all, "experts");
  const int64_t d_model = Integer(size, all, "d_model");
  const int64_t d_ffn = Integer(size, all, "d_ffn");
  constexpr int64_t kVocabulary = 32768;  // SPEC.md 3.1
  const int64_t per_layer = 4 * d_model * d_model + d_model * experts +
                            2 * d_model + experts * 3 * d_model * d_ffn;
  const int64_t total =
      2 * kVocabulary * d_model + layers * per_layer + d_model;
  Add("total_params", size, all, "total_params",
      Decimal(total, 9).Round(3, Rounding::kNearest), "N1",
      fmt::format("{} parameters with a vocabulary of {}", total, kVocabulary),
      checks);
}

void CheckHours(const Document& paper, Checks* checks) {
  const Table& compute = TableOf(paper, "compute");
  auto check = [&](const Table& table, const Row& row, int64_t gpus) {
    const Decimal gpu_hours = NumberOf(table, row, "gpu_hours");
    const int decimals = NumberOf(table, row, "train_time").decimals();
    const int64_t units =
        Positive(gpu_hours, gpu_hours.decimals(), Rounding::kNearest,
                 Place(table, row, "gpu_hours"));
    int64_t scale = gpus;
    for (int i = 0; i < gpu_hours.decimals(); ++i) scale *= 10;
    Add("hours", table, row, "train_time",
        Decimal::Quotient(units, scale, decimals, Rounding::kNearest), "N6",
        fmt::format("{} GPU h / {} GPUs", gpu_hours.Text(), gpus), checks);
  };
  for (const Row& row : compute.rows) {
    check(compute, row, Integer(compute, row, "gpus"));
  }
  const Table& throughput = TableOf(paper, "throughput");
  for (const Row& row : throughput.rows) {
    check(throughput, row, Integer(paper, row, "gpus"));
  }
}

void CheckThroughput(const Document& paper, Checks* checks) {
  const Table& table = TableOf(paper, "throughput");
  for (const Row& row : table.rows) {
    const int64_t steps = Integer(paper, row, "training.steps");
    const int64_t gpus = Integer(paper, row, "gpus");
    const int64_t tokens =
        Integer(Decimal(Integer(paper, row, "training.global_batch_sequences") *
                            Integer(paper, row, "model.sequence_length") / gpus,
                        0),
                "tokens per GPU and step of row " + row.id);
    const Decimal iteration = NumberOf(table, row, "iteration_time");
    // Units of 10 us, as printed with two decimals of a millisecond.
    const int64_t units = Positive(iteration, 2, Rounding::kNearest,
                                   Place(table, row, "iteration_time"));
    constexpr int64_t kUnitsPerHour = 360'000'000;
    constexpr int64_t kUnitsPerSecond = 100'000;
    Add("iteration_hours", table, row, "train_time",
        Decimal::Quotient(steps * units, kUnitsPerHour, 1, Rounding::kNearest),
        "N6", fmt::format("{} steps of {} ms", steps, iteration.Text()),
        checks);
    Add("iteration_gpu_hours", table, row, "gpu_hours",
        Decimal::Quotient(gpus * steps * units, kUnitsPerHour, 1,
                          Rounding::kNearest),
        "N6",
        fmt::format("{} GPUs x {} steps of {} ms", gpus, steps,
                    iteration.Text()),
        checks);
    Add("throughput_nominal", table, row, "throughput",
        Decimal::Quotient(tokens * kUnitsPerSecond, units, 0,
                          Rounding::kNearest),
        "N5",
        fmt::format("{} tokens per GPU and step / {} ms", tokens,
                    iteration.Text()),
        checks);
    const int64_t printed =
        Positive(NumberOf(table, row, "throughput"), 0, Rounding::kTruncate,
                 Place(table, row, "throughput"));
    const Decimal ratio = Decimal::Quotient(
        printed * units, tokens * kUnitsPerSecond, 4, Rounding::kNearest);
    Append({.rule = "throughput_factor",
            .place = Place(table, row, "throughput"),
            .printed = CellOf(table, row, "throughput").text,
            .computed = ratio.Text(),
            .consistent = ratio == D("1.0205"),
            .explanation =
                "printed / nominal; 1/0.98 = 1.0204 if the 2 % for validation "
                "are counted as trained"},
           "N5", checks);
  }
}

// The cluster's load can reverse this order (N7).
void CheckTimeOrder(const Document& paper, Checks* checks) {
  const Table& table = TableOf(paper, "compute");
  for (const char* corpus : {"owt", "c4"}) {
    for (int k = 1; k < 4; ++k) {
      const Row& fewer = RowOf(table, fmt::format("{}/sparse/k{}", corpus, k));
      const Row& more =
          RowOf(table, fmt::format("{}/sparse/k{}", corpus, k + 1));
      AddAtMost("time_order", table, fewer, "gpu_hours",
                NumberOf(table, more, "gpu_hours"), false, "N7",
                fmt::format("{} active expert(s) against {}", k, k + 1),
                checks);
    }
  }
}

// ---- Numbers compared with each other.

// ceil(alpha k) experts or, with a learned allocation, the mean of all layers'
// caps: (1/L) sum ceil(alpha k_l) < alpha k + 1.
void AddCap(const Document& paper, const Table& table, const Row& row,
            const std::string& column, Checks* checks) {
  const Decimal k = FieldNumber(paper, row, "router.mean_active_experts");
  const Decimal alpha = FieldNumber(paper, row, "router.expansion_factor");
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
      for (const std::string& column : AccuracyColumns(table)) {
        const Cell& cell = CellOf(table, row, column);
        if (!cell.proportion) {
          throw DataError(Place(table, row, column) + " has no item count");
        }
        const int64_t total = cell.proportion->total;
        const Decimal percent = NumberOf(table, row, column);
        // Values such as "42.5" are printed without trailing zeros.
        const std::vector<int64_t> counts =
            CountsThatPrint(percent, total, table.rounding);
        std::string computed =
            fmt::format("{} of {}", fmt::join(counts, " or "), total);
        if (counts.empty()) {
          const std::vector<int64_t> other =
              CountsThatPrint(percent, total, Rounding::kUnknown);
          computed = other.empty()
                         ? fmt::format("no count of {}", total)
                         : fmt::format("{} of {}, by the other rule",
                                       fmt::join(other, " or "), total);
        }
        Append({.rule = "count",
                .place = Place(table, row, column),
                .printed = cell.text,
                .computed = computed,
                .consistent = !counts.empty(),
                .explanation = table.rounding == Rounding::kTruncate
                                   ? "cut off at the printed decimals"
                                   : "rounded to the printed decimals"},
               NoteOnTable(table.id), checks);
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
      for (const std::string& task : AccuracyColumns(table)) {
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
  std::vector<std::string> columns = AccuracyColumns(table);
  columns.push_back("val_loss");
  for (const Row& row : table.rows) {
    if (IsSparse(row)) continue;
    const Row& baseline = RowOf(table, BaselineOf(paper, row));
    for (const std::string& column : columns) {
      const Decimal difference =
          NumberOf(table, row, column) - NumberOf(table, baseline, column);
      const Decimal zero;
      const bool lower_wins =
          ColumnOf(table, column).direction == Direction::kLowerIsBetter;
      const bool not_worse =
          lower_wins ? difference <= zero : difference >= zero;
      const bool bold = CellOf(table, row, column).bold;
      Append({.rule = "bold",
              .place = Place(table, row, column),
              .printed =
                  CellOf(table, row, column).text + (bold ? " bold" : " plain"),
              .computed = (difference >= zero ? "+" : "") + difference.Text(),
              .consistent = bold == not_worse,
              .explanation = "minus " + baseline.id},
             "N8", checks);
    }
  }
}

// ---- Numbers compared with the text.

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

}  // namespace

std::vector<ArithmeticCheck> CheckArithmetic(const Document& paper) {
  RequirePaper(paper);
  std::vector<ArithmeticCheck> checks;
  CheckParameters(paper, &checks);
  CheckHours(paper, &checks);
  CheckThroughput(paper, &checks);
  CheckTimeOrder(paper, &checks);
  CheckActiveExperts(paper, &checks);
  CheckCounts(paper, &checks);
  CheckRepeats(paper, &checks);
  CheckBold(paper, &checks);
  CheckSoftCosts(paper, &checks);
  CheckMeanActive(paper, &checks);
  CheckTauOrder(paper, &checks);
  return checks;
}

}  // namespace softmoe::golden
