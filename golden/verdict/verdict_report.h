// SPDX-License-Identifier: Apache-2.0
//
// verdict_report.h - verdicts as text and as JSON.
#ifndef SOFTMOE_GOLDEN_VERDICT_VERDICT_REPORT_H_
#define SOFTMOE_GOLDEN_VERDICT_VERDICT_REPORT_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/comparator.h"
#include "golden/verdict/verdict.h"

namespace softmoe::golden {

// How many cells or claims have each verdict: "3 FAIL, 151 PASS".
template <typename Item>
std::string StatusCounts(const std::vector<Item>& items) {
  std::map<std::string, int> counts;
  for (const Item& item : items) ++counts[StatusName(item.status)];
  std::string text;
  for (const auto& [name, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text;
}

// One line per difference: "model.d_model: 640 in the golden, 64 here
// (main_results/owt/sparse/k1 and 8 more)".
std::vector<std::string> DifferenceLines(
    const std::vector<SetUpDifference>& differences);

// "A1 router.tau: ...", as DifferenceLines.
std::vector<std::string> AssumptionLines(const Verdicts& verdicts);

// Items that are only recorded: fields, then remarks.
std::vector<std::string> RecordLines(const Verdicts& verdicts);

// The reason, plus the assumptions that a decision rests on: "...; under
// assumptions A1-A3, A7".
std::string ReasonText(const CellVerdict& verdict);
std::string ReasonText(const ClaimVerdict& verdict);

// Claim, verdict and reason of every claim; below a claim of which most pairs
// must hold, each pair has the verdict "case".
std::vector<std::vector<std::string>> ClaimRows(const Verdicts& verdicts);

// Differences of set-up, assumptions, one line per cell, ClaimRows, and the
// overall verdict with its exit code, which mentions `allowed`.
std::string DescribeVerdicts(const Verdicts& verdicts,
                             const std::set<Status>& allowed);

// The same as one JSON object, with all digits. A cell without our value has
// neither "ours" nor "difference"; recorded cells have status RECORDED. Only
// claims on most of their pairs have "cases".
nlohmann::ordered_json VerdictsJson(const Verdicts& verdicts,
                                    const std::set<Status>& allowed);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_VERDICT_VERDICT_REPORT_H_
