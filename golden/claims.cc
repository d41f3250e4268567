// SPDX-License-Identifier: Apache-2.0
#include "golden/claims.h"

#include <utility>

namespace softmoe::golden {

Interval ClaimSide::interval() const {
  if (is_number) return {number, number};
  return {cell->low, cell->high};
}

ClaimSide FindSide(const Document& document, const Claim& claim,
                   const std::string& side) {
  ClaimSide result;
  const size_t colon = side.rfind(':');
  if (colon == std::string::npos) {
    const std::optional<Decimal> number = Decimal::Parse(side);
    result.is_number = number.has_value();
    if (number) result.number = number->ToDouble();
    return result;
  }
  const Table* table = document.FindTable(claim.scope);
  if (table == nullptr) return result;
  const int64_t column = table->FindColumn(side.substr(colon + 1));
  result.row = table->FindRow(side.substr(0, colon));
  if (result.row == nullptr || column < 0) return result;
  result.column = &table->columns[static_cast<size_t>(column)];
  result.cell = &result.row->cells[static_cast<size_t>(column)];
  return result;
}

std::string PublishedVerdict(const Document& document, const Claim& claim) {
  const ClaimSide left_side = FindSide(document, claim, claim.left);
  const ClaimSide right_side = FindSide(document, claim, claim.right);
  if (!left_side.has_value() || !right_side.has_value()) return "NO_DATA";
  Interval left = left_side.interval(), right = right_side.interval();
  if (claim.op == "==") {
    if (left.high < right.low || right.high < left.low) return "REFUTED";
    const bool points = left.low == left.high && right.low == right.high;
    return points ? "HOLDS" : "NOT_RESOLVED_BY_PAPER";
  }
  if (claim.op[0] == '>') std::swap(left, right);  // now left < right
  const bool strict = claim.op.size() == 1;
  const bool always = strict ? left.high < right.low : left.high <= right.low;
  const bool never = strict ? left.low >= right.high : left.low > right.high;
  if (always) return "HOLDS";
  return never ? "REFUTED" : "NOT_RESOLVED_BY_PAPER";
}

}  // namespace softmoe::golden
