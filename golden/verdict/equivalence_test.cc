// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/equivalence.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "core/philox.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

Cell Measured(double value, int64_t runs, double deviation) {
  Cell cell;
  cell.text = "1";
  cell.value = cell.low = cell.high = value;
  cell.runs = runs;
  if (runs > 1) cell.deviation = deviation;
  return cell;
}

Cell Printed(double value, double half_unit) {
  Cell cell;
  cell.text = "1";
  cell.value = value;
  cell.low = value - half_unit;
  cell.high = value + half_unit;
  return cell;
}

Status Judge(const Cell& ours, const Cell& golden, double margin) {
  const PooledDeviation noise = Pool({&ours});
  return Equivalence(Compare(ours, golden, noise, margin), noise, margin);
}

// FORMAT.md's example: with s = 0.005 and n = 3 the half-width is 0.017, plus
// 0.005 for rounding: equivalence within less than 0.022 cannot be shown.
TEST(Equivalence, AgreesWithTheExampleOfTheDocumentation) {
  const Cell ours = Measured(2.75, 3, 0.005), golden = Printed(2.75, 0.005);
  const Difference difference = Compare(ours, golden, Pool({&ours}), 0.03);
  const double half_unit = 0.5e-5;  // of the last digit below
  EXPECT_NEAR(difference.half_width, 0.01686, half_unit);
  EXPECT_NEAR(difference.interval.high, 0.02186, half_unit);
  EXPECT_EQ(Judge(ours, golden, 0.0219), Status::kPass);
  EXPECT_EQ(Judge(ours, golden, 0.0218), Status::kInconclusive);
}

TEST(Equivalence, FailsOnlyWhereTheWholeIntervalIsOutside) {
  const Cell golden = Printed(2.75, 0.005);
  // Interval of the difference: point +- (0.01686 + 0.005).
  EXPECT_EQ(Judge(Measured(2.80, 3, 0.005), golden, 0.03),
            Status::kInconclusive);
  EXPECT_EQ(Judge(Measured(2.81, 3, 0.005), golden, 0.03), Status::kFail);
  EXPECT_EQ(Judge(Measured(2.69, 3, 0.005), golden, 0.03), Status::kFail);
  // Limits are included.
  const PooledDeviation noise = {0.25, 8};
  EXPECT_EQ(Equivalence({0, {-0.5, 0.5}, 0, 1}, noise, 0.5), Status::kPass);
  EXPECT_EQ(Equivalence({1, {0.6, 1}, 0, kLevel}, noise, 0.5), Status::kFail);
  const Cell at_margin = Measured(1.5, 3, 0.25), one = Measured(1, 1, 0);
  EXPECT_EQ(Compare(at_margin, one, noise, 0.5).p_outside, 1);
}

TEST(Equivalence, OneRunDecidesNothing) {
  const Cell ours = Measured(2.75, 1, 0);
  const PooledDeviation noise = Pool({&ours});
  EXPECT_FALSE(noise.known());
  EXPECT_EQ(Judge(ours, Printed(2.75, 0.005), 0.03), Status::kInconclusive);
  EXPECT_EQ(Compare(ours, Printed(2, 0), noise, 0.03).p_outside, 1);
  EXPECT_EQ(RunsNeeded(ours, Printed(2.75, 0.005), noise, 0.03, kLevel), 2);
}

TEST(Equivalence, RunsThatAreAllEqualAreMistrusted) {
  EXPECT_EQ(Judge(Measured(2.751, 3, 0), Printed(2.75, 0.005), 0.03),
            Status::kMistrusted);
  // A number that is exact on both sides is not a measurement.
  EXPECT_EQ(Judge(Measured(2, 3, 0), Printed(2, 0), 0.3), Status::kPass);
  // Equal runs do not prove that a number differs, either.
  EXPECT_EQ(Judge(Measured(2.85, 3, 0), Printed(2.75, 0.005), 0.03),
            Status::kMistrusted);
}

TEST(Equivalence, WhatIsSoByConstructionNeedsNoNoise) {
  auto judge = [](double ours) {
    const Cell cell = Measured(ours, 3, 0), golden = Printed(107.74, 0.005);
    const PooledDeviation noise = Pool({&cell});
    return Equivalence(Compare(cell, golden, noise, 0.03), noise, 0.03, true);
  };
  EXPECT_EQ(judge(107.74464), Status::kPass);
  EXPECT_EQ(judge(107.76), Status::kPass);
  EXPECT_EQ(judge(107.78), Status::kFail);
}

TEST(RunsAreEqual, NeedsTwoRunsWithoutDeviation) {
  EXPECT_TRUE(RunsAreEqual(Measured(1, 2, 0)));
  EXPECT_FALSE(RunsAreEqual(Measured(1, 1, 0)));
  EXPECT_FALSE(RunsAreEqual(Measured(1, 2, 1e-9)));
  EXPECT_TRUE(RunsAreEqual(Measured(0, 2, 0)));
  Cell unknown = Measured(1, 2, 0);
  unknown.deviation.reset();
  EXPECT_FALSE(RunsAreEqual(unknown));
  EXPECT_FALSE(Pool({&unknown}).known());
}

// Counts agree by chance more often than answers do.
TEST(RunsAreEqual, NeedsEqualAnswersWhereTheyAreKnown) {
  Cell ours = Measured(63, 3, 0), golden = Measured(64, 1, 0);
  ours.proportion = golden.proportion = Proportion{200, {}};
  EXPECT_TRUE(RunsAreEqual(ours));
  EXPECT_EQ(Judge(ours, golden, 20), Status::kMistrusted);
  ours.flip_share = 0;
  EXPECT_TRUE(RunsAreEqual(ours));
  EXPECT_TRUE(Pool({&ours}).all_equal());
  ours.flip_share = 0.08;
  EXPECT_FALSE(RunsAreEqual(ours));
  EXPECT_FALSE(Pool({&ours}).all_equal());
  EXPECT_EQ(Judge(ours, golden, 20), Status::kPass);
  // Such runs are a measurement that gave 0: sqrt((2 * 0 + 2 * 0.5) / 4).
  const Cell other = Measured(62, 3, std::sqrt(0.5));
  EXPECT_EQ(Pool({&ours, &other}).freedom, 4);
  EXPECT_NEAR(Pool({&ours, &other}).deviation, 0.5, 0x1p-50);
}

// Roundings of a mean over runs and steps are not noise, neither to trust nor
// to pool: every step of every run has 2 active experts.
TEST(RunsAreEqual, LooksThroughRoundings) {
  const double ulp = 0x1p-51;
  const Cell sparse = Measured(2 + ulp, 5, ulp), soft = Measured(1.73, 3, 0.25);
  EXPECT_TRUE(RunsAreEqual(sparse));
  EXPECT_EQ(Pool({&sparse, &soft}).deviation, 0.25);
  EXPECT_EQ(Pool({&sparse, &soft}).freedom, 2);
  EXPECT_EQ(Judge(Measured(2.751, 3, ulp), Printed(2.75, 0.005), 0.03),
            Status::kMistrusted);
}

// Up to 1.2e-11 of the number, whatever its sign.
TEST(RunsAreEqual, IncludesTheLimitOfRoundings) {
  const double limit = 1.2e-11 * 2;
  EXPECT_TRUE(RunsAreEqual(Measured(-2, 5, limit)));
  EXPECT_FALSE(RunsAreEqual(Measured(-2, 5, std::nextafter(limit, 1))));
}

TEST(Pool, WeighsByDegreesOfFreedom) {
  const Cell a = Measured(1, 3, 0.125), b = Measured(1, 2, 0.625),
             single = Measured(1, 1, 0), constant = Measured(1, 9, 0);
  const PooledDeviation pool = Pool({&a, &b, &single, &constant});
  EXPECT_EQ(pool.freedom, 3);
  // sqrt((2 * 1/64 + 1 * 25/64) / 3) = 3/8, without any rounding.
  EXPECT_EQ(pool.deviation, 0.375);
  EXPECT_FALSE(Pool({&single}).known());
  EXPECT_TRUE(Pool({&constant}).known());
}

// Two cells of the same trainings say no more of the deviation than one, even
// if one lacks a run: the mean of their squares has 3 degrees of freedom.
TEST(Pool, CountsTheSameTrainingsOnce) {
  Cell four = Measured(1, 4, 2), three = Measured(2, 3, 2.5),
       other = Measured(1, 2, 0.5), constant = Measured(1, 9, 0);
  four.flip_share = 0.25;
  three.flip_share = 0.5;
  const PooledDeviation alone = Pool({&four, &three, &constant}, {7, 7, 7});
  EXPECT_EQ(alone.freedom, 3);
  const double squares = (3 * 4 + 2 * 6.25) / 5;
  EXPECT_NEAR(alone.deviation, std::sqrt(squares), 0x1p-50);
  EXPECT_NEAR(*alone.flip_share, (3 * 0.25 + 2 * 0.5) / 5, 0x1p-50);
  const PooledDeviation both = Pool({&four, &other, &three}, {0, 1, 0});
  EXPECT_EQ(both.freedom, 4);
  EXPECT_NEAR(both.deviation, std::sqrt((3 * squares + 0.25) / 4), 0x1p-50);
  EXPECT_EQ(Pool({&constant, &constant}, {0, 0}).freedom, 8);
  EXPECT_EQ(Pool({&constant, &constant}).freedom, 16);
}

TEST(RunsNeeded, IsTheFirstNumberThatDecides) {
  const Cell ours = Measured(2.76, 2, 0.006), golden = Printed(2.75, 0.005);
  const PooledDeviation noise = {0.006, 8};
  ASSERT_EQ(Equivalence(Compare(ours, golden, noise, 0.03), noise, 0.03),
            Status::kPass);
  const PooledDeviation more_noise = {0.0075, 8};
  const auto runs = RunsNeeded(ours, golden, more_noise, 0.03, kLevel);
  ASSERT_TRUE(runs);
  auto status = [&](int64_t n) {
    Cell cell = ours;
    cell.runs = n;
    const PooledDeviation pool = {0.0075, 8.0 + static_cast<double>(n - 2)};
    return Equivalence(Compare(cell, golden, pool, 0.03), pool, 0.03);
  };
  EXPECT_EQ(status(*runs), Status::kPass);
  EXPECT_EQ(status(*runs - 1), Status::kInconclusive);
  // With one published run, no number of ours beats its own noise:
  // 1.645 s > 0.03 - 0.01 - 0.005.
  EXPECT_EQ(RunsNeeded(ours, golden, {0.02, 8}, 0.03, kLevel), std::nullopt);
  // There are already more runs than would be tried.
  EXPECT_EQ(
      RunsNeeded(Measured(2.76, 20'000, 0.02), golden, {0.02, 8}, 0.03, kLevel),
      std::nullopt);
}

Cell Percentage(double percent, int64_t total, int64_t runs) {
  Cell cell = Measured(percent, runs, 0.4);
  cell.proportion = Proportion{total, {}};
  return cell;
}

TEST(Compare, PercentagesAreAtLeastAsNoisyAsTheirItems) {
  const Cell ours = Percentage(63, 1838, 3), golden = Percentage(63, 1838, 1);
  const Difference difference = Compare(ours, golden, {0.01, 8}, 3.1);
  // 1.645 sqrt(2 * 0.63 * 0.37 / 1838) = 2.6197 points. For equal p Newcombe's
  // half width is that times sqrt(1 - w + w / (2 p (1 - p))) / (1 + w), w =
  // 1.645^2 / 1838: less by 0.0017. That is 2.62 to two decimals.
  EXPECT_NEAR(difference.half_width, 2.62, 0.5e-2);
  const Difference seeds = Compare(ours, golden, {5, 8}, 3.1);
  EXPECT_GT(seeds.half_width, 8);
  // Roundings of a mean may lead beyond 100 %.
  EXPECT_EQ(
      Compare(Percentage(101, 1838, 3), golden, {0.01, 8}, 3.1).half_width,
      Compare(Percentage(100, 1838, 3), golden, {0.01, 8}, 3.1).half_width);
  // A deviation that is no number makes no interval, whatever the items say.
  const Interval none = Compare(ours, golden, {NAN, 8}, 3.1).interval;
  EXPECT_TRUE(std::isnan(none.low) && std::isnan(none.high));
  // The items of one side alone say nothing.
  const Cell far = Measured(80, 3, 0.4), plain = Measured(63, 1, 0);
  const double p = Compare(far, plain, {1, 8}, 3.1).p_outside;
  EXPECT_EQ(Compare(Percentage(80, 1838, 3), plain, {1, 8}, 3.1).p_outside, p);
  EXPECT_EQ(Compare(far, golden, {1, 8}, 3.1).p_outside, p);
  EXPECT_LT(p, 1);
}

// By the items alone: seeds that agree leave nothing to chance.
TEST(Compare, ItemsRuleTheMarginOutOnlyBeyondIt) {
  const auto p_outside = [](double percent) {
    return Compare(Percentage(percent, 1838, 3), Percentage(63, 1838, 1),
                   {1e-9, 8}, 3.1)
        .p_outside;
  };
  EXPECT_EQ(p_outside(63), 1);
  EXPECT_EQ(p_outside(65), 1);
  // 1.9 points beyond the margin, at a standard error of 1.57: about 0.11.
  EXPECT_NEAR(p_outside(68), 0.11, 0.02);
  EXPECT_LT(p_outside(80), 1e-12);
  EXPECT_LT(p_outside(46), 1e-12);
  // 13.9 points beyond, 9.46 standard errors: 1.6e-21, of which 1 - p would
  // keep no digit.
  EXPECT_NEAR(p_outside(80), 1.6e-21, 0.1e-21);
}

// 99 % of 200 items against 90 %: Newcombe's interval reaches 3.57 points down
// and 4.10 up, the other way round 4.10 down and 3.57 up. 6 points lie beyond
// the margin of 3, and the part of chance is that of the side towards it.
TEST(Compare, ItemsHaveTheNoiseOfTheSideTowardsTheMargin) {
  const Interval most = WilsonInterval(0.99, 200, 1 - 2 * kLevel);
  const Interval fewer = WilsonInterval(0.9, 200, 1 - 2 * kLevel);
  const double near = 100 * std::hypot(0.99 - most.low, fewer.high - 0.9);
  const double far = 100 * std::hypot(most.high - 0.99, 0.9 - fewer.low);
  EXPECT_NEAR(near, 3.57, 0.005);
  EXPECT_NEAR(far, 4.10, 0.005);
  const double error = near / NormalQuantile(1 - kLevel);
  for (const double sign : {1.0, -1.0}) {
    const Cell ours = Percentage(sign > 0 ? 99 : 90, 200, 3);
    const Cell golden = Percentage(sign > 0 ? 90 : 99, 200, 1);
    const Difference difference = Compare(ours, golden, {1e-9, 8}, 3);
    EXPECT_NEAR(difference.interval.low, 9 * sign - (sign > 0 ? near : far),
                1e-9);
    EXPECT_NEAR(difference.interval.high, 9 * sign + (sign > 0 ? far : near),
                1e-9);
    EXPECT_NEAR(difference.half_width, far, 1e-9);
    EXPECT_NEAR(difference.p_outside,
                NormalCdf(-6 / error) + NormalCdf(-12 / error), 1e-9);
  }
}

TEST(Compare, HasDigitsOfAPValueFarBeyondTheMargin) {
  const Cell golden = Measured(0, 1, 0);
  // 9 beyond the margin, at a standard error of 0.1 sqrt(1 / 8 + 1).
  const double p =
      Compare(Measured(10, 8, 0.1), golden, {0.1, 100}, 1).p_outside;
  const double error = 0.1 * std::sqrt(1.0 / 8 + 1);
  EXPECT_EQ(p, StudentCdf(-9 / error, 100) + StudentCdf(-11 / error, 100));
  EXPECT_GT(p, 0);
  // By flips: 25 points beyond it are 14.4 standard errors of sqrt(3). By seeds
  // alone, they are so many standard errors that p is 0.
  EXPECT_GT(Compare(Percentage(91, 200, 2), Percentage(63, 200, 1),
                    {0.001, 200, 0.08}, 3)
                .p_outside,
            0);
}

// At one degree of freedom t has the Cauchy distribution: P(T < -t) is
// atan(1 / t) / pi. From a true difference of +0.03 this one is 0.1 too high,
// and its mirror image 0.16 too low; the first alone has p = 0.049.
TEST(Compare, PValueCountsBothTails) {
  const Cell ours = Measured(0.13, 2, 0.0127), golden = Measured(0, 1, 0);
  const PooledDeviation noise = Pool({&ours});
  const Difference difference = Compare(ours, golden, noise, 0.03);
  const double error = 0.0127 * std::sqrt(1.0 / 2 + 1);
  const double pi = std::acos(-1);
  const double near = std::atan(error / 0.1) / pi;
  EXPECT_LT(near, kLevel);
  EXPECT_NEAR(difference.p_outside, near + std::atan(error / 0.16) / pi,
              2 * kDistributionError);
  EXPECT_GT(difference.interval.low, 0.03);
  EXPECT_EQ(Equivalence(difference, noise, 0.03), Status::kInconclusive);
}

// 8 % flips of 200 items: 100 sqrt(0.08 / (2 * 200 * 2)) = 1 point for two
// runs, sqrt(2) for one, and sqrt(3) for their difference.
TEST(Compare, FlipsTakeThePlaceOfTheItemsWhereTheyAreKnown) {
  const Cell ours = Percentage(63, 200, 2), golden = Percentage(63, 200, 1);
  const double ulps = 8 * 2.3e-16;
  EXPECT_NEAR(FlipDeviation(0.08, ours), 1, ulps);
  EXPECT_NEAR(FlipDeviation(0.08, golden), std::sqrt(2), ulps);
  const double expected = NormalQuantile(1 - kLevel) * std::sqrt(3);
  EXPECT_NEAR(Compare(ours, golden, {0.01, 8, 0.08}, 3.1).half_width, expected,
              8 * ulps);
  EXPECT_GT(Compare(ours, golden, {0.01, 8}, 3.1).half_width, 2 * expected);
  // The larger noise counts.
  EXPECT_EQ(Compare(ours, golden, {5, 8, 0.08}, 3.1).half_width,
            Compare(ours, golden, {5, 8}, 3.1).half_width);
  // 3 points beyond the margin: the tails beyond 3 / sqrt(3) and 9 / sqrt(3).
  EXPECT_NEAR(
      Compare(Percentage(69, 200, 2), golden, {0.01, 8, 0.08}, 3).p_outside,
      NormalCdf(-std::sqrt(3)) + NormalCdf(-3 * std::sqrt(3)), 8 * ulps);
}

TEST(Pool, WeighsFlipsByDegreesOfFreedom) {
  Cell two = Percentage(60, 200, 2), four = Percentage(61, 200, 4);
  EXPECT_FALSE(Pool({&two, &four}).flip_share.has_value());
  two.flip_share = 0.25;
  EXPECT_EQ(Pool({&two, &four}).flip_share, 0.25);
  four.flip_share = 0.125;
  EXPECT_EQ(Pool({&two, &four}).flip_share, (0.25 + 3 * 0.125) / 4);
  four.flip_share = 0;  // probably one run
  EXPECT_EQ(Pool({&two, &four}).flip_share, 0.25);
}

// Runs that answer item i correctly with probability p_i, independently: flips
// and the spread of differences are what FORMAT.md derives, and an interval of
// 90 % holds the truth, 0, that often. Five standard errors of a variance over
// n draws are 5 sqrt(2 / n); of a share of 90 %, 1.5 / sqrt(n).
TEST(Compare, FlipsGiveTheSpreadOfMadeUpRuns) {
  constexpr int kItems = 300, kDraws = 4000, kRuns = 3;
  uint64_t index = 0;
  const auto uniform = [&index] {
    return UniformFromWord(
        PhiloxWords({11, RandomStream::kTestData}, index++)[0]);
  };
  std::vector<double> p(kItems);
  double flip_share = 0;
  for (double& one : p) {
    one = uniform();
    flip_share += 2 * one * (1 - one) / kItems;
  }
  const auto run = [&] {
    int right = 0;
    for (const double one : p) right += uniform() < one ? 1 : 0;
    return 100.0 * right / kItems;
  };
  double squares = 0;
  int held = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    double mean = 0;
    for (int r = 0; r < kRuns; ++r) mean += run() / kRuns;
    const Difference difference =
        Compare(Percentage(mean, kItems, kRuns), Percentage(run(), kItems, 1),
                {1e-9, 8, flip_share}, 3);
    squares += difference.point * difference.point / kDraws;
    held += difference.interval.low <= 0 && difference.interval.high >= 0;
  }
  const double variance = 1e4 * flip_share / (2 * kItems) * (1.0 / kRuns + 1);
  EXPECT_NEAR(squares, variance, variance * 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(held / double{kDraws}, 0.9, 1.5 / std::sqrt(kDraws));
}

// --- Laws

struct Case {
  Cell ours, golden;
  PooledDeviation noise;
  double margin;
};

Case RandomCase() {
  Case c;
  const double point = *rc::gen::inRange(-200, 201) / 1000.0;
  c.ours = Measured(2.75 + point, *rc::gen::inRange<int64_t>(1, 12), 0.001);
  c.golden = Printed(2.75, *rc::gen::inRange(0, 3) * 0.005);
  if (*rc::gen::arbitrary<bool>()) {
    c.ours.proportion = Proportion{*rc::gen::inRange<int64_t>(50, 9000), {}};
    c.golden.proportion = Proportion{*rc::gen::inRange<int64_t>(50, 9000), {}};
  }
  c.noise = {*rc::gen::inRange(1, 60) / 1000.0,
             static_cast<double>(*rc::gen::inRange(1, 30))};
  c.margin = *rc::gen::inRange(1, 150) / 1000.0;
  return c;
}

Status Judge(const Case& c) {
  return Equivalence(Compare(c.ours, c.golden, c.noise, c.margin), c.noise,
                     c.margin);
}

RC_GTEST_PROP(EquivalenceProperty, ALargerMarginOnlyHelps, ()) {
  const Case c = RandomCase();
  Case wider = c;
  wider.margin += *rc::gen::inRange(1, 200) / 1000.0;
  const Status before = Judge(c), after = Judge(wider);
  if (before == Status::kPass) RC_ASSERT(after == Status::kPass);
  if (after == Status::kFail) RC_ASSERT(before == Status::kFail);
  // The distribution function's argument decreases, roundings included.
  RC_ASSERT(
      Compare(wider.ours, wider.golden, wider.noise, wider.margin).p_outside >=
      Compare(c.ours, c.golden, c.noise, c.margin).p_outside -
          2 * kDistributionError);
}

RC_GTEST_PROP(EquivalenceProperty, MoreNoiseOnlyBlurs, ()) {
  const Case c = RandomCase();
  Case noisier = c;
  noisier.noise.deviation += *rc::gen::inRange(1, 100) / 1000.0;
  const Status before = Judge(c), after = Judge(noisier);
  RC_ASSERT(after == before || after == Status::kInconclusive);
}

RC_GTEST_PROP(EquivalenceProperty, CoarserPrintOnlyBlurs, ()) {
  const Case c = RandomCase();
  Case coarser = c;
  const double more = *rc::gen::inRange(1, 50) / 1000.0;
  coarser.golden.low -= more;
  coarser.golden.high += more;
  const Status before = Judge(c), after = Judge(coarser);
  RC_ASSERT(after == before || after == Status::kInconclusive);
}

RC_GTEST_PROP(EquivalenceProperty, MoreRunsNeverUndecide, ()) {
  const Case c = RandomCase();
  Case more = c;
  more.ours.runs += *rc::gen::inRange(1, 20);
  const Status before = Judge(c), after = Judge(more);
  if (before != Status::kInconclusive) RC_ASSERT(after == before);
}

RC_GTEST_PROP(EquivalenceProperty, FailsExactlyWhereTheTestRejects, ()) {
  const Case c = RandomCase();
  const Difference difference = Compare(c.ours, c.golden, c.noise, c.margin);
  // If the p-value of both tails is small, so is that of the nearer one, and
  // the interval, which is that test in another form, lies outside. Close to
  // the level the two may differ by rounding: of the distribution function
  // twice, and of numbers below 1 at most 16 times, in units of a noise of at
  // least c.noise.deviation (the density is below 1/2).
  const double rounding =
      2 * kDistributionError + 16 * 0x1p-53 / 2 / c.noise.deviation;
  RC_PRE(std::fabs(difference.p_outside - kLevel) > rounding);
  const bool fails = Judge(c) == Status::kFail;
  RC_ASSERT(fails == (difference.p_outside < kLevel));
  if (fails) {
    RC_ASSERT(difference.interval.low > c.margin ||
              difference.interval.high < -c.margin);
  }
}

RC_GTEST_PROP(EquivalenceProperty, IsSymmetric, ()) {
  const Case c = RandomCase();
  // Mirrored at the golden value; proportions are not symmetric in p.
  RC_PRE(!c.ours.proportion.has_value());
  Case mirrored = c;
  const double value = 2 * c.golden.value - c.ours.value;
  mirrored.ours.value = mirrored.ours.low = mirrored.ours.high = value;
  const Difference a = Compare(c.ours, c.golden, c.noise, c.margin);
  const Difference b =
      Compare(mirrored.ours, mirrored.golden, c.noise, c.margin);
  // Four roundings of numbers below 4: both ends of the print, the mirrored
  // value, and the two intervals.
  const double rounding = 4 * 0x1p-52;
  RC_ASSERT(std::fabs(a.interval.low + b.interval.high) <= rounding);
  RC_ASSERT(std::fabs(a.interval.high + b.interval.low) <= rounding);
}

RC_GTEST_PROP(EquivalenceProperty, RunsNeededDecide, ()) {
  const Case c = RandomCase();
  RC_PRE(Judge(c) == Status::kInconclusive);
  const auto runs = RunsNeeded(c.ours, c.golden, c.noise, c.margin, kLevel);
  if (!runs) return;
  RC_ASSERT(*runs > c.ours.runs);
  Case more = c;
  more.ours.runs = *runs;
  more.noise.freedom += static_cast<double>(*runs - c.ours.runs);
  RC_ASSERT(Judge(more) != Status::kInconclusive);
}

}  // namespace
}  // namespace softmoe::golden
