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
          FieldsOf(results, *row), FieldsOf(golden, golden_row),
          golden.provenance.origin);
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

// The ids of the tables of `one` that `other` lacks, joined.
std::string LackingTables(const Document& one, const Document& other) {
  std::vector<std::string> ids;
  for (const Table& table : one.tables) {
    if (other.FindTable(table.id) == nullptr) ids.push_back(table.id);
  }
  return internal::JoinNames(ids);
}

// Remarks on what the verdicts do not cover.
void AddRemarks(const Document& results, const Document& golden,
                Verdicts* verdicts) {
  std::vector<std::string>& remarks = verdicts->remarks;
  const bool unsupported =
      golden.provenance.origin != Origin::kPaper && !verdicts->cells.empty();
  const std::string missing = LackingTables(golden, results);
  const std::string more = LackingTables(results, golden);
  if (!missing.empty()) {
    remarks.push_back("tables of the golden that the results lack: " + missing);
  }
  if (!more.empty()) {
    remarks.push_back("not judged: tables that the golden lacks: " + more);
  }
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
          "{}",
          golden_table.id, rows, golden_table.rows.size(),
          unsupported ? "UNSUPPORTED" : "not judged"));
    }
    if (rows < table->rows.size()) {
      remarks.push_back(fmt::format(
          "{}: the golden lacks {} of the results' {} rows; they are not "
          "judged",
          table->id, table->rows.size() - rows, table->rows.size()));
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
  internal::JudgeCells(results, golden, &verdicts);
  internal::JudgeClaims(results, golden, &verdicts);
  AddRemarks(results, golden, &verdicts);
  return verdicts;
}

}  // namespace softmoe::golden
