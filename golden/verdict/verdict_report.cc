// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/verdict_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/text/text_table.h"
#include "golden/document/fingerprint.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;

std::string List(const std::string& title,
                 const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = title + "\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text + "\n";
}

std::string NumberText(double value, double difference) {
  // Enough digits to see the difference.
  return fmt::format("{:.{}g}", value, difference == 0 ? 6 : 7);
}

// "A1-A3, A7".
std::string AssumptionLabels(std::vector<size_t> assumptions) {
  std::sort(assumptions.begin(), assumptions.end());
  std::string text;
  for (size_t i = 0; i < assumptions.size();) {
    size_t end = i + 1;  // end of a sequence of labels without gaps
    while (end < assumptions.size() &&
           assumptions[end] == assumptions[end - 1] + 1) {
      ++end;
    }
    text += fmt::format("{}A{}", text.empty() ? "" : ", ", assumptions[i] + 1);
    if (end - i > 1) text += fmt::format("-A{}", assumptions[end - 1] + 1);
    i = end;
  }
  return text;
}

std::string ReasonText(const std::string& reason, Status status,
                       const std::vector<size_t>& assumptions) {
  const bool decided = status == Status::kPass || status == Status::kFail ||
                       status == Status::kMistrusted;
  if (!decided || assumptions.empty()) return reason;
  return fmt::format("{}{}under assumptions {}", reason,
                     reason.empty() ? "" : "; ", AssumptionLabels(assumptions));
}

std::string CellTable(const std::vector<CellVerdict>& cells, bool judged) {
  if (cells.empty()) return "";
  TextTable table({"row", "column", "golden", "ours", "delta", "+-", "margin",
                   "verdict", "reason"});
  for (const CellVerdict& cell : cells) {
    std::string notes;
    for (const std::string& note : cell.notes) notes += " " + note;
    const std::string reason = judged ? ReasonText(cell) : "";
    table.Add(
        {cell.table + "/" + cell.row, cell.column, cell.golden_text,
         cell.ours ? NumberText(*cell.ours, *cell.difference) : "-",
         cell.ours ? fmt::format("{:+.3g}", *cell.difference) : "-",
         cell.half_width > 0 ? fmt::format("{:.2g}", cell.half_width) : "-",
         cell.margin > 0 ? fmt::format("{:g}", cell.margin) : "-",
         judged ? StatusName(cell.status) : "recorded",
         reason + (notes.empty()
                       ? ""
                       : (reason.empty() ? "see" : "; see") + notes)});
  }
  return table.Text() + "\n";
}

std::string AllowedText(const std::set<Status>& allowed) {
  std::string text;
  for (Status status : allowed) {
    text += (text.empty() ? "" : ", ") + std::string(StatusName(status));
  }
  return text;
}

// "154 cells: 3 FAIL, 151 PASS".
template <typename Item>
std::string Counts(const std::string& what, const std::vector<Item>& items) {
  return fmt::format("{} {}{}{}", items.size(), what, items.empty() ? "" : ": ",
                     StatusCounts(items));
}

Json CellJson(const Verdicts& verdicts, const CellVerdict& cell, bool judged) {
  Json json;
  json["table"] = cell.table;
  json["row"] = cell.row;
  json["column"] = cell.column;
  json["status"] = judged ? StatusName(cell.status) : "RECORDED";
  json["reason"] = ReasonText(cell);
  json["golden"] = cell.golden_text;
  if (cell.ours) {
    json["ours"] = *cell.ours;
    json["difference"] = *cell.difference;
  }
  json["half_width"] = cell.half_width;
  json["margin"] = cell.margin;
  json["runs_needed"] = cell.runs_needed;
  json["assumptions"] = Json::array();
  for (const size_t assumption : cell.assumptions) {
    json["assumptions"].push_back(verdicts.assumptions[assumption].field.name);
  }
  json["notes"] = cell.notes;
  return json;
}

}  // namespace

std::vector<std::string> DifferenceLines(
    const std::vector<SetUpDifference>& differences) {
  std::vector<std::string> lines;
  for (const auto& [field, rows] : differences) {
    const std::string more =
        rows.size() > 1 ? fmt::format(" and {} more", rows.size() - 1) : "";
    lines.push_back(fmt::format("{}: {} ({}{})", field.name,
                                DescribeDifference(field), rows[0], more));
  }
  return lines;
}

std::vector<std::string> AssumptionLines(const Verdicts& verdicts) {
  std::vector<std::string> lines = DifferenceLines(verdicts.assumptions);
  for (size_t i = 0; i < lines.size(); ++i) {
    lines[i] = fmt::format("A{} {}", i + 1, lines[i]);
  }
  return lines;
}

std::vector<std::string> RecordLines(const Verdicts& verdicts) {
  std::vector<std::string> lines = DifferenceLines(verdicts.reported);
  lines.insert(lines.end(), verdicts.remarks.begin(), verdicts.remarks.end());
  return lines;
}

std::string ReasonText(const CellVerdict& verdict) {
  return ReasonText(verdict.reason, verdict.status, verdict.assumptions);
}

std::string ReasonText(const ClaimVerdict& verdict) {
  return ReasonText(verdict.reason, verdict.status, verdict.assumptions);
}

std::vector<std::vector<std::string>> ClaimRows(const Verdicts& verdicts) {
  std::vector<std::vector<std::string>> rows;
  for (const ClaimVerdict& claim : verdicts.claims) {
    rows.push_back({claim.claim, StatusName(claim.status), ReasonText(claim)});
    for (const ClaimCase& each : claim.cases) {
      rows.push_back({each.claim, "case", each.reason});
    }
  }
  return rows;
}

std::string DescribeVerdicts(const Verdicts& verdicts,
                             const std::set<Status>& allowed) {
  std::string text = List("Set-up that differs (must match):",
                          DifferenceLines(verdicts.fingerprint_differences)) +
                     List("Assumptions: the golden leaves these open.",
                          AssumptionLines(verdicts)) +
                     List("For the record:", RecordLines(verdicts)) +
                     CellTable(verdicts.cells, true) +
                     CellTable(verdicts.recorded, false);
  if (!verdicts.claims.empty()) {
    TextTable table({"claim", "verdict", "reason"});
    for (auto& row : ClaimRows(verdicts)) table.Add(std::move(row));
    text += table.Text() + "\n";
  }
  if (verdicts.cells.empty() && verdicts.claims.empty()) {
    text += verdicts.recorded.empty()
                ? "No table and row of the golden is in the results: nothing "
                  "to compare.\n"
                : "Only recorded columns: nothing was judged.\n";
  }
  text += Counts("cells", verdicts.cells) + "\n" +
          Counts("claims", verdicts.claims) + "\n";
  if (!allowed.empty()) text += "allowed: " + AllowedText(allowed) + "\n";
  text +=
      fmt::format("OVERALL {} (exit code {})\n", StatusName(verdicts.overall()),
                  static_cast<int>(verdicts.exit_code(allowed)));
  return text;
}

Json VerdictsJson(const Verdicts& verdicts, const std::set<Status>& allowed) {
  Json json;
  json["overall"] = StatusName(verdicts.overall());
  json["exit_code"] = static_cast<int>(verdicts.exit_code(allowed));
  json["allowed"] = Json::array();
  for (Status status : allowed) json["allowed"].push_back(StatusName(status));
  json["fingerprint_differences"] =
      DifferenceLines(verdicts.fingerprint_differences);
  json["assumptions"] = AssumptionLines(verdicts);
  json["remarks"] = RecordLines(verdicts);
  json["cells"] = Json::array();
  for (const CellVerdict& cell : verdicts.cells) {
    json["cells"].push_back(CellJson(verdicts, cell, true));
  }
  json["recorded"] = Json::array();
  for (const CellVerdict& cell : verdicts.recorded) {
    json["recorded"].push_back(CellJson(verdicts, cell, false));
  }
  json["claims"] = Json::array();
  for (const ClaimVerdict& claim : verdicts.claims) {
    Json of_claim = {{"claim", claim.claim},
                     {"status", StatusName(claim.status)},
                     {"reason", ReasonText(claim)}};
    for (const ClaimCase& each : claim.cases) {
      of_claim["cases"].push_back(
          {{"claim", each.claim}, {"reason", each.reason}});
    }
    json["claims"].push_back(std::move(of_claim));
  }
  return json;
}

}  // namespace softmoe::golden
