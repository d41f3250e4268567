// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/verdict.h"

#include <fmt/core.h>

#include "golden/document/fingerprint.h"
#include "golden/verdict/verdict_judge.h"

namespace softmoe::golden {
namespace {

int Severity(Status status) {
  switch (status) {
    case Status::kFail:
      return 4;
    case Status::kMistrusted:
      return 3;
    case Status::kNotComparable:
      return 2;
    case Status::kInconclusive:
    case Status::kUnsupported:
      return 1;
    case Status::kPass:
      return 0;
  }
  return 4;
}

void CompareSetUps(const Document& results, const Document& golden,
                   Verdicts* verdicts) {
  for (const Table& golden_table : golden.tables) {
    const Table* table = results.FindTable(golden_table.id);
    if (table == nullptr) continue;
    for (const Row& golden_row : golden_table.rows) {
      const Row* row = table->FindRow(golden_row.id);
      if (row == nullptr) continue;
      const FingerprintComparison comparison = CompareFingerprints(
          FieldsOf(results, *row), FieldsOf(golden, golden_row));
      const std::string place = golden_table.id + "/" + golden_row.id;
      for (const auto& field : comparison.differences) {
        internal::AddDifference(field, place,
                                &verdicts->fingerprint_differences);
      }
      for (const auto& field : comparison.open) {
        internal::AddDifference(field, place, &verdicts->assumptions);
      }
      for (const auto& field : comparison.reported) {
        internal::AddDifference(field, place, &verdicts->reported);
      }
    }
  }
}

// Remarks on what the verdicts do not cover.
void AddRemarks(const Document& results, const Document& golden,
                Verdicts* verdicts) {
  std::vector<std::string>& remarks = verdicts->remarks;
  for (const Table& golden_table : golden.tables) {
    const Table* table = results.FindTable(golden_table.id);
    if (table == nullptr) continue;
    size_t rows = 0;
    for (const Row& row : golden_table.rows) {
      rows += table->FindRow(row.id) != nullptr ? 1 : 0;
    }
    if (rows < golden_table.rows.size()) {
      remarks.push_back(fmt::format(
          "{}: {} of the golden's {} rows are in the results; the others are "
          "not judged",
          golden_table.id, rows, golden_table.rows.size()));
    }
    for (const Column& column : golden_table.columns) {
      const int64_t index = table->FindColumn(column.id);
      if (index < 0) continue;
      const std::string& metric =
          table->columns[static_cast<size_t>(index)].metric;
      if (metric != column.metric) {
        remarks.push_back(
            fmt::format("{}/{} is defined as '{}' in the golden, '{}' here",
                        golden_table.id, column.id, column.metric, metric));
      }
    }
  }
  if (golden.provenance.origin == Origin::kOurRun) {
    remarks.push_back(
        "the golden is a run of ours (REGRESSION): agreement says that nothing "
        "changed, not that it is right");
  }
}

}  // namespace

Status Worse(Status a, Status b) { return Severity(a) >= Severity(b) ? a : b; }

ExitCode ExitCodeOf(Status status) {
  switch (status) {
    case Status::kPass:
      return ExitCode::kDone;
    case Status::kFail:
      return ExitCode::kFailed;
    case Status::kMistrusted:
      return ExitCode::kMistrusted;
    case Status::kNotComparable:
      return ExitCode::kNotComparable;
    case Status::kInconclusive:
    case Status::kUnsupported:
      return ExitCode::kInconclusive;
  }
  return ExitCode::kSelfCheck;
}

Status Verdicts::overall(const std::set<Status>& allowed) const {
  Status worst = Status::kPass;
  auto count = [&](Status status) {
    if (!allowed.contains(status)) worst = Worse(worst, status);
  };
  for (const CellVerdict& cell : cells) count(cell.status);
  for (const ClaimVerdict& claim : claims) count(claim.status);
  if (cells.empty() && claims.empty()) {
    // No common cells, or only columns that are never judged.
    count(recorded.empty() ? Status::kNotComparable : Status::kInconclusive);
  }
  return worst;
}

Verdicts Judge(const Document& results, const Document& golden) {
  Verdicts verdicts;
  CompareSetUps(results, golden, &verdicts);
  AddRemarks(results, golden, &verdicts);
  internal::JudgeCells(results, golden, &verdicts);
  internal::JudgeClaims(results, golden, &verdicts);
  return verdicts;
}

}  // namespace softmoe::golden
