// SPDX-License-Identifier: Apache-2.0
#include "golden/document/claims.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace softmoe::golden {
namespace {

// A document with cells r:a and r:b with the given intervals; an interval of
// negative length makes an empty cell.
Document TwoCells(Interval a, Interval b) {
  Document document;
  Table table;
  table.id = "t";
  table.columns.resize(2);
  table.columns[0].id = "a";
  table.columns[1].id = "b";
  Row row;
  row.id = "r";
  for (Interval interval : {a, b}) {
    Cell cell;
    if (interval.low <= interval.high) {
      cell.text = "1";
      cell.low = interval.low;
      cell.high = interval.high;
    }
    row.cells.push_back(cell);
  }
  table.rows = {row};
  document.tables = {table};
  return document;
}

std::string Verdict(Interval a, const std::string& op, Interval b) {
  Claim claim;
  claim.scope = "t";
  claim.left = "r:a";
  claim.op = op;
  claim.right = "r:b";
  return PublishedVerdict(TwoCells(a, b), claim);
}

constexpr const char* kOpen = "NOT_RESOLVED_BY_PAPER";

TEST(PublishedVerdict, ComparesIntervals) {
  EXPECT_EQ(Verdict({1, 2}, "<", {3, 4}), "HOLDS");
  EXPECT_EQ(Verdict({3, 4}, "<", {1, 2}), "REFUTED");
  EXPECT_EQ(Verdict({1, 3}, "<", {2, 4}), kOpen);
  EXPECT_EQ(Verdict({1, 2}, ">", {3, 4}), "REFUTED");
  EXPECT_EQ(Verdict({3, 4}, ">=", {1, 2}), "HOLDS");
  // Without counted items no lower value is comparable.
  EXPECT_EQ(Verdict({3, 4}, ">~", {1, 2}), "HOLDS");
  EXPECT_EQ(Verdict({1, 2}, ">~", {3, 4}), "REFUTED");
}

// 2.78 < 2.79: both may be 2.785.
TEST(PublishedVerdict, TouchingIntervalsDecideOnlyWhatAllowsEquality) {
  EXPECT_EQ(Verdict({1, 2}, "<", {2, 3}), kOpen);
  EXPECT_EQ(Verdict({1, 2}, "<=", {2, 3}), "HOLDS");
  EXPECT_EQ(Verdict({2, 3}, "<", {1, 2}), "REFUTED");
  EXPECT_EQ(Verdict({2, 3}, "<=", {1, 2}), kOpen);
  EXPECT_EQ(Verdict({2, 2}, "<", {2, 2}), "REFUTED");
  EXPECT_EQ(Verdict({2, 2}, "<=", {2, 2}), "HOLDS");
}

TEST(PublishedVerdict, EqualityNeedsPoints) {
  EXPECT_EQ(Verdict({2, 2}, "==", {2, 2}), "HOLDS");
  EXPECT_EQ(Verdict({1, 2}, "==", {1, 2}), kOpen);
  EXPECT_EQ(Verdict({1, 2}, "==", {3, 3}), "REFUTED");
  EXPECT_EQ(Verdict({1, 2}, "==", {2, 2}), kOpen);
}

TEST(PublishedVerdict, KnowsNumbersAndEmptyCells) {
  EXPECT_EQ(Verdict({1, 2}, "<", {1, 0}), "NO_DATA");
  Claim claim;
  claim.scope = "t";
  claim.left = "r:a";
  claim.op = "<";
  claim.right = "2.5";
  EXPECT_EQ(PublishedVerdict(TwoCells({1, 2}, {1, 0}), claim), "HOLDS");
  for (const char* left : {"other:a", "r:c", "r"}) {
    claim.left = left;
    EXPECT_EQ(PublishedVerdict(TwoCells({1, 2}, {1, 0}), claim), "NO_DATA");
  }
  claim.left = "r:a";
  claim.scope = "u";
  EXPECT_EQ(PublishedVerdict(TwoCells({1, 2}, {1, 0}), claim), "NO_DATA");
}

// A document with two percentages of `items` items each, as printed.
PublishedEvidence OfPercentages(double left, const std::string& op,
                                double right, int64_t items) {
  Document document =
      TwoCells({left - 0.005, left + 0.005}, {right - 0.005, right + 0.005});
  std::vector<Cell>& cells = document.tables[0].rows[0].cells;
  cells[0].value = left;
  cells[1].value = right;
  for (Cell& cell : cells) cell.proportion = Proportion{items, {}};
  Claim claim;
  claim.scope = "t";
  claim.left = "r:a";
  claim.op = op;
  claim.right = "r:b";
  return EvidenceOf(document, claim);
}

TEST(EvidenceOf, PercentagesAreResolvedAboveTheNoiseOfTheirItems) {
  // 1.96 * sqrt(2 * 0.25 / 10,000) = 1.386 points at one half.
  const PublishedEvidence near = OfPercentages(51.2, ">", 50, 10'000);
  EXPECT_EQ(near.as_printed, "HOLDS");
  EXPECT_EQ(near.resolved, kOpen);
  EXPECT_NEAR(near.difference, 1.2, 1e-12);
  ASSERT_TRUE(near.sampling.has_value());
  EXPECT_NEAR(*near.sampling, 1.96 * std::sqrt(0.49971200), 1e-3);
  EXPECT_FALSE(near.deviation.has_value());
  // Both roundings count, too: 0.01 points.
  EXPECT_EQ(OfPercentages(51.39, ">", 50, 10'000).resolved, kOpen);
  EXPECT_EQ(OfPercentages(51.40, ">", 50, 10'000).resolved, "HOLDS");
  EXPECT_EQ(OfPercentages(51.40, "<", 50, 10'000).resolved, "REFUTED");
  EXPECT_EQ(OfPercentages(51.40, ">=", 50, 10'000).resolved, "HOLDS");
  EXPECT_EQ(OfPercentages(51.40, "==", 50, 10'000).resolved, "REFUTED");
  EXPECT_EQ(OfPercentages(50, "==", 50, 10'000).resolved, kOpen);
  // ">~" holds for a tie, or if the left side is lower by at most 1.386 points
  // plus what rounding leaves open.
  EXPECT_EQ(OfPercentages(50, ">~", 50, 10'000).as_printed, "HOLDS");
  EXPECT_EQ(OfPercentages(48.63, ">~", 50, 10'000).as_printed, "HOLDS");
  EXPECT_EQ(OfPercentages(48.62, ">~", 50, 10'000).as_printed, kOpen);
  EXPECT_EQ(OfPercentages(48.60, ">~", 50, 10'000).as_printed, "REFUTED");
  EXPECT_EQ(OfPercentages(48.63, ">=", 50, 10'000).as_printed, "REFUTED");
  EXPECT_EQ(OfPercentages(48.63, ">~", 50, 10'000).resolved, kOpen);
  EXPECT_EQ(OfPercentages(51, ">~", 50, 10'000).resolved, "HOLDS");
  // A hundred times the items have a tenth of the noise.
  EXPECT_EQ(OfPercentages(51.2, ">", 50, 1'000'000).resolved, "HOLDS");
}

TEST(PublishedOfMost, NeedsMoreThanHalfOrThatHalfAreRefuted) {
  const std::string holds = "HOLDS", refuted = "REFUTED", no_data = "NO_DATA";
  EXPECT_EQ(PublishedOfMost({holds, holds, refuted}), holds);
  EXPECT_EQ(PublishedOfMost({holds, refuted, refuted}), refuted);
  EXPECT_EQ(PublishedOfMost({holds, holds, refuted, refuted}), refuted);
  EXPECT_EQ(PublishedOfMost({holds, holds, holds, refuted}), holds);
  EXPECT_EQ(PublishedOfMost({holds, holds, refuted, kOpen}), kOpen);
  EXPECT_EQ(PublishedOfMost({holds, refuted, no_data}), kOpen);
  EXPECT_EQ(PublishedOfMost({holds, holds, no_data}), holds);
  EXPECT_EQ(PublishedOfMost({no_data, no_data}), no_data);
  EXPECT_EQ(PublishedOfMost({no_data, kOpen}), kOpen);
}

// The width follows from the printed numbers, as in PublishedVerdict.
TEST(ComparableWidth, IsThatOfThePublishedVerdictAndOnlyForThatOperator) {
  Document document = TwoCells({49.995, 50.005}, {49.995, 50.005});
  std::vector<Cell>& cells = document.tables[0].rows[0].cells;
  for (Cell& cell : cells) {
    cell.value = 50;
    cell.proportion = Proportion{10'000, {}};
  }
  Claim claim;
  claim.scope = "t";
  claim.left = "r:a";
  claim.right = "r:b";
  for (const char* op : {"<", "<=", ">", ">=", "=="}) {
    claim.op = op;
    EXPECT_EQ(ComparableWidth(document, claim), 0) << op;
  }
  claim.op = ">~";
  EXPECT_NEAR(ComparableWidth(document, claim), 1.96 * std::sqrt(0.5), 1e-12);
  claim.right = "50";  // has no noise
  EXPECT_NEAR(ComparableWidth(document, claim), 1.96 * 0.5, 1e-12);
  claim.right = "r:b";
  cells[0] = {};
  EXPECT_EQ(ComparableWidth(document, claim), 0);
}

// Two losses, or a loss and a number, in a column with this `lane`.
PublishedEvidence OfLosses(Interval left, const std::string& op, Interval right,
                           Lane lane = Lane::kStatistical,
                           const std::string& number = "") {
  Document document = TwoCells(left, right);
  for (Column& column : document.tables[0].columns) column.lane = lane;
  std::vector<Cell>& cells = document.tables[0].rows[0].cells;
  cells[0].value = (left.low + left.high) / 2;
  cells[1].value = (right.low + right.high) / 2;
  Claim claim;
  claim.scope = "t";
  claim.left = "r:a";
  claim.op = op;
  claim.right = number.empty() ? "r:b" : number;
  return EvidenceOf(document, claim);
}

TEST(EvidenceOf, LossesSayWhichSeedDeviationWouldLeaveThemUnresolved) {
  const PublishedEvidence apart = OfLosses({2, 3}, "<", {7, 8});
  EXPECT_EQ(apart.as_printed, "HOLDS");
  EXPECT_EQ(apart.resolved, "HOLDS");
  EXPECT_EQ(apart.difference, -5);
  EXPECT_FALSE(apart.sampling.has_value());
  ASSERT_TRUE(apart.deviation.has_value());
  EXPECT_NEAR(*apart.deviation, 4 / (1.96 * std::sqrt(2.0)), 1e-12);
  // A refutation can be noise as well.
  EXPECT_NEAR(*OfLosses({7, 8}, "<", {2, 3}).deviation,
              4 / (1.96 * std::sqrt(2.0)), 1e-12);
  // For touching intervals any noise is enough.
  EXPECT_EQ(OfLosses({2, 3}, "<=", {3, 4}).deviation, 0);
  // One side has no noise: a setting, or a number.
  EXPECT_NEAR(*OfLosses({2, 3}, "<", {7, 7}).deviation, 4 / 1.96, 1e-12);
  EXPECT_NEAR(*OfLosses({2, 3}, "<", {0, 0}, Lane::kStatistical, "7").deviation,
              4 / 1.96, 1e-12);
}

TEST(EvidenceOf, SaysNothingWhereNothingIsResolvedOrNothingIsNoise) {
  EXPECT_FALSE(OfLosses({2, 3}, "<", {2.5, 4}).deviation.has_value());
  EXPECT_FALSE(
      OfLosses({2, 3}, "<", {7, 8}, Lane::kExact).deviation.has_value());
  const PublishedEvidence empty = OfLosses({2, 3}, "<", {1, 0});
  EXPECT_EQ(empty.as_printed, "NO_DATA");
  EXPECT_EQ(empty.resolved, "NO_DATA");
  EXPECT_FALSE(empty.deviation.has_value());
}

Interval RandomInterval() {
  const int low = *rc::gen::inRange(0, 6);
  return {static_cast<double>(low),
          static_cast<double>(low + *rc::gen::inRange(0, 4))};
}

// Brute force over the integers and halves within the intervals.
RC_GTEST_PROP(PublishedVerdictProperty, HoldsForAllValuesOrNone, ()) {
  const Interval a = RandomInterval(), b = RandomInterval();
  const std::string op =
      *rc::gen::elementOf(std::vector<std::string>{"<", "<=", ">", ">="});
  bool some = false, all = true;
  for (double x = a.low; x <= a.high; x += 0.5) {
    for (double y = b.low; y <= b.high; y += 0.5) {
      const bool holds = op == "<"    ? x < y
                         : op == "<=" ? x <= y
                         : op == ">"  ? x > y
                                      : x >= y;
      some |= holds;
      all &= holds;
    }
  }
  const std::string verdict = Verdict(a, op, b);
  RC_ASSERT(verdict == (all ? "HOLDS" : some ? kOpen : "REFUTED"));
}

RC_GTEST_PROP(PublishedVerdictProperty, SwapsWithItsMirror, ()) {
  const Interval a = RandomInterval(), b = RandomInterval();
  RC_ASSERT(Verdict(a, "<", b) == Verdict(b, ">", a));
  RC_ASSERT(Verdict(a, "<=", b) == Verdict(b, ">=", a));
  RC_ASSERT(Verdict(a, "==", b) == Verdict(b, "==", a));
}

}  // namespace
}  // namespace softmoe::golden
