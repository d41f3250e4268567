// SPDX-License-Identifier: Apache-2.0
#include "golden/document/claims.h"

#include <algorithm>
#include <cmath>
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

namespace {

constexpr char kNotWorse[] = ">~";

// The verdict of intervals `left` and `right` on `claim`; `slack` is how far
// the left side may lie below the right and still count as comparable.
std::string VerdictOn(const Claim& claim, Interval left, Interval right,
                      double slack) {
  if (claim.op == "==") {
    if (left.high < right.low || right.high < left.low) return "REFUTED";
    const bool points = left.low == left.high && right.low == right.high;
    return points ? "HOLDS" : "NOT_RESOLVED_BY_PAPER";
  }
  if (claim.op == kNotWorse) left = {left.low + slack, left.high + slack};
  if (claim.op[0] == '>') std::swap(left, right);  // now left < right
  const bool strict = claim.op.size() == 1;
  const bool always = strict ? left.high < right.low : left.high <= right.low;
  const bool never = strict ? left.low >= right.high : left.low > right.high;
  if (always) return "HOLDS";
  return never ? "REFUTED" : "NOT_RESOLVED_BY_PAPER";
}

// The number that a side represents.
double ValueOf(const ClaimSide& side) {
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a number or a cell
  return side.is_number ? side.number : side.cell->value;
}

// Sampling variance of a percentage of counted items, in percent squared; 0 for
// other numbers.
double SamplingVariance(const ClaimSide& side) {
  if (side.is_number || !side.cell->proportion) return 0;
  const double p = side.cell->value / 100;
  return 1e4 * p * (1 - p) / static_cast<double>(side.cell->proportion->total);
}

// kResolvedErrors standard errors of the difference, in percent.
double ResolvedDifference(const ClaimSide& left, const ClaimSide& right) {
  return kResolvedErrors *
         std::sqrt(SamplingVariance(left) + SamplingVariance(right));
}

// Whether the side is a measurement of one run rather than a setting.
bool HasSeedNoise(const ClaimSide& side) {
  return !side.is_number && side.column->lane == Lane::kStatistical &&
         side.cell->low < side.cell->high;
}

}  // namespace

std::string PublishedVerdict(const Document& document, const Claim& claim) {
  const ClaimSide left = FindSide(document, claim, claim.left);
  const ClaimSide right = FindSide(document, claim, claim.right);
  if (!left.has_value() || !right.has_value()) return "NO_DATA";
  return VerdictOn(claim, left.interval(), right.interval(),
                   ResolvedDifference(left, right));
}

std::string PublishedOfMost(const std::vector<std::string>& pairs) {
  const auto count = [&](const char* verdict) {
    return static_cast<size_t>(std::ranges::count(pairs, verdict));
  };
  const size_t needed = pairs.size() / 2 + 1;
  if (count("HOLDS") >= needed) return "HOLDS";
  if (count("REFUTED") > pairs.size() - needed) return "REFUTED";
  const bool none = count("NO_DATA") == pairs.size();
  return none ? "NO_DATA" : "NOT_RESOLVED_BY_PAPER";
}

double ComparableWidth(const Document& document, const Claim& claim) {
  if (claim.op != kNotWorse) return 0;
  const ClaimSide left = FindSide(document, claim, claim.left);
  const ClaimSide right = FindSide(document, claim, claim.right);
  if (!left.has_value() || !right.has_value()) return 0;
  return ResolvedDifference(left, right);
}

PublishedEvidence EvidenceOf(const Document& document, const Claim& claim) {
  PublishedEvidence evidence;
  evidence.as_printed = evidence.resolved = PublishedVerdict(document, claim);
  if (evidence.as_printed == "NO_DATA") return evidence;
  const ClaimSide left = FindSide(document, claim, claim.left);
  const ClaimSide right = FindSide(document, claim, claim.right);
  evidence.difference = ValueOf(left) - ValueOf(right);
  const Interval a = left.interval(), b = right.interval();
  const double sampling = ResolvedDifference(left, right);
  if (sampling > 0) {
    evidence.sampling = sampling;
    evidence.resolved =
        VerdictOn(claim, {a.low - sampling, a.high + sampling}, b, sampling);
    return evidence;
  }
  const int noisy = HasSeedNoise(left) + HasSeedNoise(right);
  if (evidence.as_printed != "NOT_RESOLVED_BY_PAPER" && noisy > 0) {
    const double gap = std::max({a.low - b.high, b.low - a.high, 0.0});
    evidence.deviation = gap / (kResolvedErrors * std::sqrt(noisy));
  }
  return evidence;
}

}  // namespace softmoe::golden
