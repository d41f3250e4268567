// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/paper_arithmetic.h"

#include <fmt/format.h>

#include "golden/paper/paper_arithmetic_parts.h"
#include "golden/paper/paper_lookup.h"

namespace softmoe::golden {
namespace internal {

void Add(const std::string& rule, const Table& table, const Row& row,
         const std::string& column, const Decimal& computed,
         const std::string& note, const std::string& explanation,
         Checks* checks) {
  ArithmeticCheck check;
  check.rule = rule;
  check.place = table.id + "/" + row.id + "/" + column;
  check.printed = CellOf(table, row, column).text;
  check.computed = computed.Text();
  check.consistent = NumberOf(table, row, column) == computed;
  check.note = check.consistent ? "" : note;
  check.explanation = explanation;
  checks->push_back(std::move(check));
}

namespace {

Decimal D(const char* text) { return *Decimal::Parse(text); }

int64_t Integer(const Table& table, const Row& row, const std::string& column) {
  return NumberOf(table, row, column).Round(0, Rounding::kTruncate).units();
}

}  // namespace

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
    int64_t scale = gpus;
    for (int i = 0; i < gpu_hours.decimals(); ++i) scale *= 10;
    Add("hours", table, row, "train_time",
        Decimal::Quotient(gpu_hours.units(), scale, decimals,
                          Rounding::kNearest),
        "N6", fmt::format("{} GPU h / {} GPUs", gpu_hours.Text(), gpus),
        checks);
  };
  for (const Row& row : compute.rows) {
    check(compute, row, Integer(compute, row, "gpus"));
  }
  const Table& throughput = TableOf(paper, "throughput");
  for (const Row& row : throughput.rows) {
    check(throughput, row, std::stoll(FieldOf(paper, row, "gpus")));
  }
}

void CheckThroughput(const Document& paper, Checks* checks) {
  const Table& table = TableOf(paper, "throughput");
  for (const Row& row : table.rows) {
    const int64_t steps = std::stoll(FieldOf(paper, row, "training.steps"));
    const int64_t gpus = std::stoll(FieldOf(paper, row, "gpus"));
    const int64_t tokens =
        std::stoll(FieldOf(paper, row, "training.global_batch_sequences")) *
        std::stoll(FieldOf(paper, row, "model.sequence_length")) / gpus;
    const Decimal iteration = NumberOf(table, row, "iteration_time");
    // Units of 10 us, as printed with two decimals of a millisecond.
    const int64_t units = iteration.Round(2, Rounding::kNearest).units();
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
    ArithmeticCheck factor;
    factor.rule = "throughput_factor";
    factor.place = table.id + "/" + row.id + "/throughput";
    factor.printed = CellOf(table, row, "throughput").text;
    const int64_t printed = NumberOf(table, row, "throughput").units();
    const Decimal ratio = Decimal::Quotient(
        printed * units, tokens * kUnitsPerSecond, 4, Rounding::kNearest);
    factor.computed = ratio.Text();
    factor.consistent = ratio == D("1.0205");
    factor.note = factor.consistent ? "" : "N5";
    factor.explanation =
        "printed / nominal; 1/0.98 = 1.0204 if the 2 % for validation are "
        "counted as trained";
    checks->push_back(std::move(factor));
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
      const Decimal less_time = NumberOf(table, fewer, "gpu_hours");
      const Decimal more_time = NumberOf(table, more, "gpu_hours");
      ArithmeticCheck check;
      check.rule = "time_order";
      check.place = table.id + "/" + fewer.id + "/gpu_hours";
      check.printed = less_time.Text();
      check.computed = "<= " + more_time.Text();
      check.consistent = less_time <= more_time;
      check.note = check.consistent ? "" : "N7";
      check.explanation =
          fmt::format("{} active expert(s) against {}", k, k + 1);
      checks->push_back(std::move(check));
    }
  }
}

}  // namespace internal

std::vector<ArithmeticCheck> CheckArithmetic(const Document& paper) {
  std::vector<ArithmeticCheck> checks;
  internal::CheckParameters(paper, &checks);
  internal::CheckHours(paper, &checks);
  internal::CheckThroughput(paper, &checks);
  internal::CheckTimeOrder(paper, &checks);
  internal::CheckActiveExperts(paper, &checks);
  internal::CheckCounts(paper, &checks);
  internal::CheckRepeats(paper, &checks);
  internal::CheckBold(paper, &checks);
  internal::CheckSoftCosts(paper, &checks);
  internal::CheckMeanActive(paper, &checks);
  internal::CheckTauOrder(paper, &checks);
  return checks;
}

}  // namespace softmoe::golden
