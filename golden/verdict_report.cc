// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict_report.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "golden/text_table.h"

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

std::string Number(double value, double difference) {
  // Enough digits to see the difference.
  return fmt::format("{:.{}g}", value, difference == 0 ? 6 : 7);
}

std::string CellTable(const std::vector<CellVerdict>& cells, bool judged) {
  if (cells.empty()) return "";
  TextTable table({"row", "column", "golden", "ours", "delta", "+-", "margin",
                   "verdict", "reason"});
  for (const CellVerdict& cell : cells) {
    std::string notes;
    for (const std::string& note : cell.notes) notes += " " + note;
    table.Add(
        {cell.table + "/" + cell.row, cell.column, cell.golden_text,
         cell.ours ? Number(*cell.ours, *cell.difference) : "-",
         cell.ours ? fmt::format("{:+.3g}", *cell.difference) : "-",
         cell.half_width > 0 ? fmt::format("{:.2g}", cell.half_width) : "-",
         cell.margin > 0 ? fmt::format("{:g}", cell.margin) : "-",
         judged ? StatusName(cell.status) : "recorded",
         (judged ? cell.reason : "") +
             (notes.empty() ? ""
                            : (cell.reason.empty() || !judged ? "" : ";") +
                                  std::string(" see") + notes)});
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
  std::map<std::string, int> counts;
  for (const Item& item : items) ++counts[StatusName(item.status)];
  std::string text = fmt::format("{} {}", items.size(), what);
  std::string separator = ": ";
  for (const auto& [name, count] : counts) {
    text += separator + fmt::format("{} {}", count, name);
    separator = ", ";
  }
  return text;
}

Json CellJson(const CellVerdict& cell, bool judged) {
  Json json;
  json["table"] = cell.table;
  json["row"] = cell.row;
  json["column"] = cell.column;
  json["status"] = judged ? StatusName(cell.status) : "RECORDED";
  json["reason"] = cell.reason;
  json["golden"] = cell.golden_text;
  if (cell.ours) {
    json["ours"] = *cell.ours;
    json["difference"] = *cell.difference;
  }
  json["half_width"] = cell.half_width;
  json["margin"] = cell.margin;
  json["runs_needed"] = cell.runs_needed;
  json["assumptions"] = cell.assumptions;
  json["notes"] = cell.notes;
  return json;
}

}  // namespace

std::string DescribeVerdicts(const Verdicts& verdicts,
                             const std::set<Status>& allowed) {
  std::string text =
      List("Set-up that differs (must match):",
           verdicts.fingerprint_differences) +
      List("Assumptions: the golden leaves these open.", verdicts.assumptions) +
      List("For the record:", verdicts.remarks) +
      CellTable(verdicts.cells, true) + CellTable(verdicts.recorded, false);
  if (!verdicts.claims.empty()) {
    TextTable table({"claim", "verdict", "reason"});
    for (const ClaimVerdict& claim : verdicts.claims) {
      table.Add({claim.claim, StatusName(claim.status), claim.reason});
    }
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
      fmt::format("OVERALL {} (exit code {})\n", StatusName(verdicts.overall),
                  static_cast<int>(verdicts.exit_code(allowed)));
  return text;
}

std::string VerdictsJson(const Verdicts& verdicts,
                         const std::set<Status>& allowed) {
  Json json;
  json["overall"] = StatusName(verdicts.overall);
  json["exit_code"] = static_cast<int>(verdicts.exit_code(allowed));
  json["allowed"] = Json::array();
  for (Status status : allowed) json["allowed"].push_back(StatusName(status));
  json["fingerprint_differences"] = verdicts.fingerprint_differences;
  json["assumptions"] = verdicts.assumptions;
  json["remarks"] = verdicts.remarks;
  json["cells"] = Json::array();
  for (const CellVerdict& cell : verdicts.cells) {
    json["cells"].push_back(CellJson(cell, true));
  }
  json["recorded"] = Json::array();
  for (const CellVerdict& cell : verdicts.recorded) {
    json["recorded"].push_back(CellJson(cell, false));
  }
  json["claims"] = Json::array();
  for (const ClaimVerdict& claim : verdicts.claims) {
    json["claims"].push_back({{"claim", claim.claim},
                              {"status", StatusName(claim.status)},
                              {"reason", claim.reason}});
  }
  return json.dump(2) + "\n";
}

}  // namespace softmoe::golden
