// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "golden/document/fingerprint.h"
#include "golden/verdict/statistics.h"
#include "golden/verdict/verdict_judge.h"

namespace softmoe::golden::internal {
namespace {

// A statistical verdict; a FAIL awaits Holm's procedure.
struct Candidate {
  size_t cell;  // index into the verdicts
  double p_value;
  Cell ours;  // in the paper's tokens
  const Cell& golden;
  PooledDeviation noise;
};

class CellJudge {
 public:
  CellJudge(const Document& results, const Document& golden, Verdicts* verdicts)
      : results_(results), golden_(golden), verdicts_(*verdicts) {}

  void Run() {
    bool common = false;  // whether they have any row in common
    for (const Table& golden_table : golden_.tables) {
      const Table* table = results_.FindTable(golden_table.id);
      for (const Row& golden_row : golden_table.rows) {
        const Row* row =
            table == nullptr ? nullptr : table->FindRow(golden_row.id);
        if (row != nullptr) {
          common = true;
          JudgeRow(golden_table, golden_row, *table, *row);
        } else if (golden_.provenance.origin != Origin::kPaper) {
          // Missing rows count, except the paper's: no grid has all of those.
          AddMissingRow(golden_table, golden_row);
        }
      }
    }
    if (!common) verdicts_.cells.clear();  // not comparable
    ApplyHolm();
    for (const auto& [cell, tokens] : tokens_) {
      std::string& reason = verdicts_.cells[cell].reason;
      reason += (reason.empty() ? "" : "; ") + tokens;
    }
  }

 private:
  static CellVerdict VerdictOf(const Table& golden_table, const Row& golden_row,
                               size_t c) {
    CellVerdict verdict;
    verdict.table = golden_table.id;
    verdict.row = golden_row.id;
    verdict.column = golden_table.columns[c].id;
    verdict.golden_text = golden_row.cells[c].text;
    verdict.margin = golden_table.columns[c].margin.value_or(0);
    verdict.notes = golden_row.cells[c].notes;
    return verdict;
  }

  void AddMissingRow(const Table& golden_table, const Row& golden_row) {
    for (size_t c = 0; c < golden_table.columns.size(); ++c) {
      const bool judged = golden_table.columns[c].lane != Lane::kReportOnly;
      if (!judged || golden_row.cells[c].empty()) continue;
      CellVerdict verdict = VerdictOf(golden_table, golden_row, c);
      verdict.status = Status::kUnsupported;
      verdict.reason = "the results have no such row";
      verdicts_.cells.push_back(std::move(verdict));
    }
  }

  void JudgeRow(const Table& golden_table, const Row& golden_row,
                const Table& table, const Row& row) {
    const FingerprintComparison fingerprints = CompareFingerprints(
        FieldsOf(results_, row), FieldsOf(golden_, golden_row),
        golden_.provenance.origin);
    for (size_t c = 0; c < golden_table.columns.size(); ++c) {
      const Cell& golden_cell = golden_row.cells[c];
      if (golden_cell.empty()) continue;
      const Column& column = golden_table.columns[c];
      CellVerdict verdict = VerdictOf(golden_table, golden_row, c);
      verdict.assumptions = IndicesOf(fingerprints.open, verdicts_.assumptions);
      const int64_t index = table.FindColumn(column.id);
      const Cell* cell =
          index < 0 ? nullptr : &row.cells[static_cast<size_t>(index)];
      if (cell != nullptr && !cell->empty()) {
        verdict.ours = cell->value;
        verdict.difference = cell->value - golden_cell.value;
      }
      if (column.lane == Lane::kReportOnly) {
        if (cell != nullptr && !cell->empty()) {
          verdict.reason = "recorded, not judged";
          verdicts_.recorded.push_back(std::move(verdict));
        }
        continue;
      }
      if (!fingerprints.comparable()) {
        // Comes first: a missing or diverged value would then say nothing.
        verdict.status = Status::kNotComparable;
        verdict.reason =
            "differs in " + JoinNames(FieldNames(fingerprints.differences));
      } else if (cell == nullptr || cell->empty()) {
        JudgeMissing(cell, &verdict);
      } else {
        JudgeCell(column, table.columns[static_cast<size_t>(index)], golden_row,
                  row, *cell, golden_cell, &verdict);
      }
      verdicts_.cells.push_back(std::move(verdict));
    }
  }

  static void JudgeMissing(const Cell* cell, CellVerdict* verdict) {
    const bool diverged =
        cell != nullptr &&
        std::count(cell->flags.begin(), cell->flags.end(), "DIVERGED") > 0;
    verdict->status = diverged ? Status::kFail : Status::kUnsupported;
    verdict->reason = diverged ? "a run diverged, so the row gives no number"
                               : "the results have no value here";
  }

  // `ours`: our column of that id.
  void JudgeCell(const Column& column, const Column& ours,
                 const Row& golden_row, const Row& row, const Cell& cell,
                 const Cell& golden_cell, CellVerdict* verdict) {
    verdict->reason = ColumnsDiffer(golden_, column, ours);
    if (verdict->reason.empty()) {
      verdict->reason = ItemsDiffer(
          ItemsOf(golden_, golden_row, golden_cell, column.id), "in the golden",
          ItemsOf(results_, row, cell, column.id), "here");
    }
    if (!verdict->reason.empty()) {
      verdict->status = Status::kNotComparable;
      return;
    }
    for (const size_t assumption :
         AssumedDefinition(golden_, column, ours, verdict->table + "/" + row.id,
                           &verdicts_.assumptions)) {
      verdict->assumptions.push_back(assumption);
    }
    switch (column.lane) {
      case Lane::kExact:
        JudgeExact(cell, golden_cell, verdict);
        break;
      case Lane::kBound:
        JudgeBound(cell, golden_cell, *column.margin, verdict);
        break;
      case Lane::kStatistical:
        if (IsSetting(golden_, golden_cell)) {
          // The margin is for measurements.
          verdict->margin = 0;
          JudgeExact(cell, golden_cell, verdict);
        } else {
          JudgeInTokens(column, golden_row, row, cell, golden_cell, verdict);
        }
        break;
      case Lane::kReportOnly:
        break;
    }
  }

  // Our value must print like the golden, in every run. Doubles made from
  // decimals may be off by an ulp; other people's averages may have been taken
  // in float32, where a sum and a quotient round by 2^-24 each. If n runs all
  // lie that close to one number, their deviation is at most sqrt(n / (n - 1))
  // times as much.
  void JudgeExact(const Cell& cell, const Cell& golden_cell,
                  CellVerdict* verdict) const {
    const bool of_others =
        results_.provenance.origin == Origin::kOtherImplementation;
    const double slack =
        (of_others ? 0x1p-23 : 4e-16) *
        std::max(std::fabs(golden_cell.low), std::fabs(golden_cell.high));
    const double low = golden_cell.low - slack, high = golden_cell.high + slack;
    const auto n = static_cast<double>(cell.runs);
    const double spread = of_others ? std::sqrt(n / (n - 1)) * slack : 0;
    if (cell.deviation && !RunsAreEqual(cell) && *cell.deviation > spread) {
      verdict->status = Status::kFail;
      verdict->reason =
          fmt::format("its runs differ: deviation {:.2g}", *cell.deviation);
    } else if (cell.high < low || cell.low > high) {
      verdict->status = Status::kFail;
      verdict->reason = fmt::format("does not print as {}", golden_cell.text);
    } else if (low <= cell.low && cell.high <= high) {
      verdict->status = Status::kPass;
    } else {
      verdict->status = Status::kInconclusive;
      verdict->reason = "ours is printed too coarsely to tell";
    }
  }

  static void JudgeBound(const Cell& cell, const Cell& golden_cell,
                         double margin, CellVerdict* verdict) {
    const double low = cell.low - golden_cell.high;
    const double high = cell.high - golden_cell.low;
    if (low >= -margin && high <= margin) {
      verdict->status = Status::kPass;
    } else if (low > margin || high < -margin) {
      verdict->status = Status::kFail;
      verdict->reason = "over its bound";
    } else {
      verdict->status = Status::kInconclusive;
      verdict->reason = "within the bound or not, depending on the rounding";
    }
  }

  // A loss per token depends on how much text a token is. Ours is judged as
  // nat/byte times the bytes of the paper's tokens, where those differ (N27).
  void JudgeInTokens(const Column& column, const Row& golden_row,
                     const Row& row, const Cell& cell, const Cell& golden_cell,
                     CellVerdict* verdict) {
    const auto tokens = TokenSizesOf(results_, golden_, verdict->table, column,
                                     golden_row, row);
    if (!tokens || !tokens->converts()) {
      JudgeStatistically(column, row, 1, cell, golden_cell, verdict);
    } else {
      const Cell converted = Scaled(cell, tokens->factor);
      verdict->ours = converted.value;
      verdict->difference = converted.value - golden_cell.value;
      verdict->assumptions.push_back(
          AddDifference(tokens->field, verdict->table + "/" + row.id,
                        &verdicts_.assumptions));
      JudgeStatistically(column, row, tokens->factor, converted, golden_cell,
                         verdict);
    }
    if (tokens) {
      tokens_.emplace_back(verdicts_.cells.size(),
                           DescribeTokens(*tokens, cell));
    }
  }

  // `scale`: what our numbers were multiplied by.
  void JudgeStatistically(const Column& column, const Row& row, double scale,
                          const Cell& cell, const Cell& golden_cell,
                          CellVerdict* verdict) {
    const double margin = *column.margin;
    PooledDeviation noise =
        PoolColumn(results_, golden_, verdict->table, column.id, row);
    noise.deviation *= scale;
    const Difference difference = Compare(cell, golden_cell, noise, margin);
    if (noise.known() && cell.proportion && golden_cell.proportion) {
      NameNoise(*verdict, row, noise);
    }
    verdict->half_width =
        std::isfinite(difference.half_width) ? difference.half_width : 0;
    const bool constructed = RunsAreEqual(golden_cell);
    const bool equal = golden_cell.low == golden_cell.high &&
                       cell.low == golden_cell.low &&
                       cell.high == golden_cell.high;
    // Other people's numbers may be rounded, and counts may agree by chance.
    const bool bits = results_.provenance.origin == Origin::kOurRun &&
                      golden_.provenance.origin == Origin::kOurRun &&
                      !cell.proportion && !golden_cell.proportion;
    if (equal && (constructed ? !cell.deviation || RunsAreEqual(cell)
                              : bits && AreTheSameRuns(cell, golden_cell))) {
      verdict->status = Status::kPass;
      verdict->half_width = 0;
      verdict->reason = constructed ? "equal by construction" : "equal bits";
      return;
    }
    verdict->status = Equivalence(difference, noise, margin, constructed);
    const bool decided =
        verdict->status == Status::kPass || verdict->status == Status::kFail;
    // Even if other rows show noise, this row has probably run only once.
    if (decided && AreSuspicious(cell, golden_, golden_cell)) {
      verdict->status = Status::kMistrusted;
    }
    // A p-value without noise must not ease Holm's correction for the others.
    const bool mistrusted = verdict->status == Status::kMistrusted;
    candidates_.push_back({.cell = verdicts_.cells.size(),
                           .p_value = mistrusted ? 1.0 : difference.p_outside,
                           .ours = cell,
                           .golden = golden_cell,
                           .noise = noise});
    if (mistrusted) {
      verdict->reason = kEqualRuns;
    } else if (verdict->status == Status::kFail) {
      verdict->reason = fmt::format(
          "outside of +-{:g} with all its confidence interval (p = {:.2g})",
          margin, difference.p_outside);
    }
  }

  // Adds one remark for each column and corpus: what was taken as the noise of
  // its items (ruling 18).
  void NameNoise(const CellVerdict& verdict, const Row& row,
                 const PooledDeviation& noise) {
    const std::string corpus =
        WithoutQuotes(FieldValue(results_, row, kCorpusField));
    const std::string remark =
        fmt::format("{}/{}{}: ", verdict.table, verdict.column,
                    corpus.empty() ? "" : " on " + corpus) +
        (noise.flip_share
             ? fmt::format("{:.3g} % of the answers flip between seeds of a "
                           "row, which is the noise of its items",
                           100 * *noise.flip_share)
             : "how many answers flip between seeds is not known; the "
               "binomial width of its items stands in for it");
    if (std::ranges::count(verdicts_.remarks, remark) == 0) {
      verdicts_.remarks.push_back(remark);
    }
  }

  // Says what would decide. A FAIL counts only at `level`, Holm's strictest.
  static void DescribeOpen(const Cell& cell, const Cell& golden_cell,
                           const PooledDeviation& noise, double level,
                           CellVerdict* verdict) {
    if (!noise.known()) {
      verdict->runs_needed = 2;
      verdict->reason =
          "no row of this corpus has two runs, so the seed noise is unknown";
      return;
    }
    const double margin = verdict->margin;
    const auto runs = RunsNeeded(cell, golden_cell, noise, margin, level);
    verdict->runs_needed = runs.value_or(0);
    const bool inside = std::fabs(*verdict->difference) <= margin;
    verdict->reason =
        runs ? fmt::format("{} runs do not decide; {} would for {}", cell.runs,
                           *runs, inside ? "PASS" : "FAIL")
             : "unattainable: no number of our runs decides against so few "
               "golden runs, or items";
  }

  // A FAIL stands only if Holm's procedure over all statistical cells confirms
  // it; what more runs would decide depends on their number, too.
  void ApplyHolm() {
    std::vector<double> p_values;
    for (const Candidate& candidate : candidates_) {
      p_values.push_back(candidate.p_value);
    }
    const std::vector<bool> rejected = HolmRejections(p_values, kLevel);
    // Holm's procedure rejects at this level whatever the other p-values are.
    const double level = kLevel / static_cast<double>(p_values.size());
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const auto& [cell, p_value, ours, golden_cell, noise] = candidates_[i];
      CellVerdict& verdict = verdicts_.cells[cell];
      if (verdict.status == Status::kInconclusive) {
        DescribeOpen(ours, golden_cell, noise, level, &verdict);
      }
      if (verdict.status != Status::kFail || rejected[i]) continue;
      const auto runs =
          RunsNeeded(ours, golden_cell, noise, verdict.margin, level);
      verdict.status = Status::kInconclusive;
      verdict.runs_needed = runs.value_or(0);
      verdict.reason = fmt::format(
          "outside of its margin (p = {:.2g}), but not after Holm's "
          "correction for {} comparisons; {} would be",
          p_value, p_values.size(),
          runs ? fmt::format("{} runs", *runs) : "no number of our runs");
    }
  }

  const Document& results_;
  const Document& golden_;
  Verdicts& verdicts_;
  std::vector<Candidate> candidates_;
  // What to say about both sides' tokens, by index into the verdicts.
  std::vector<std::pair<size_t, std::string>> tokens_;
};

}  // namespace

void JudgeCells(const Document& results, const Document& golden,
                Verdicts* verdicts) {
  CellJudge(results, golden, verdicts).Run();
}

}  // namespace softmoe::golden::internal
