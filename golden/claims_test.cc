// SPDX-License-Identifier: Apache-2.0
#include "golden/claims.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace softmoe::golden {
namespace {

// A document with the cells r:a and r:b of the given intervals; an interval
// of negative length stands for an empty cell.
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
}

TEST(PublishedVerdict, KnowsNumbersAndEmptyCells) {
  EXPECT_EQ(Verdict({1, 2}, "<", {1, 0}), "NO_DATA");
  Claim claim;
  claim.scope = "t";
  claim.left = "r:a";
  claim.op = "<";
  claim.right = "2.5";
  EXPECT_EQ(PublishedVerdict(TwoCells({1, 2}, {1, 0}), claim), "HOLDS");
  claim.left = "other:a";
  EXPECT_EQ(PublishedVerdict(TwoCells({1, 2}, {1, 0}), claim), "NO_DATA");
}

Interval RandomInterval() {
  const int low = *rc::gen::inRange(0, 6);
  return {static_cast<double>(low),
          static_cast<double>(low + *rc::gen::inRange(0, 4))};
}

// By brute force over the integers and halves within the intervals.
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
