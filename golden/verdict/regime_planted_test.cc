// SPDX-License-Identifier: Apache-2.0
//
// The frozen rule on made-up records with known truth: how often it finds
// absent effects, and present ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/philox.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/regime_curve.h"

namespace softmoe::golden {
namespace {

constexpr uint64_t kRegimeSeed = 20261124;
constexpr uint32_t kRecords = 20000;
// Three standard errors of a share p of that many records.
double ThreeErrors(double p) { return 3 * std::sqrt(p * (1 - p) / kRecords); }

// Known from the mini grid: means of its sparse rows' losses on GCIDE, and a
// run's deviation after the seed effect is removed.
const std::vector<double> kExperts = {1, 2, 3, 4};
const std::vector<double> kLosses = {3.6778, 3.5999, 3.5797, 3.5712};
constexpr double kDeviation = 0.0109, kSeedDeviation = 0.05;
const std::vector<double> kActive = {3.78, 1.77, 3.37};  // of the primary rows
constexpr double kActiveDeviation = 0.03;
constexpr int kSeeds = 12;

RegimeTable Draw(uint32_t record, double effect) {
  const Interval exponents = FrozenRegime().exponents;
  static const double kTruth = SmoothExponent(kExperts, kLosses, exponents);
  auto truth = [](double active) {
    return ReadSmoothCurve(kExperts, kLosses, kTruth, active);
  };
  Normals normals(kRegimeSeed, record);
  RegimeTable table;
  table.k = kExperts;
  for (int s = 0; s < kSeeds; ++s) {
    const double of_seed = kSeedDeviation * normals.Next();
    std::vector<double> sparse, loss, active;
    for (const double k : kExperts) {
      sparse.push_back(truth(k) + of_seed + kDeviation * normals.Next());
    }
    for (const double mean : kActive) {
      active.push_back(
          std::min(mean + kActiveDeviation * normals.Next(), kExperts.back()));
      loss.push_back(truth(active.back()) + effect + of_seed +
                     kDeviation * normals.Next());
    }
    table.sparse.push_back(sparse);
    table.loss.push_back(loss);
    table.active.push_back(active);
  }
  return table;
}

struct Shares {
  double superior = 0, matches = 0, inferior = 0, undecided = 0;
  double covered = 0, linear_covered = 0;  // by each reading's interval
  // Controls that fail although nothing is wrong; superior without them.
  double relabelled_fails = 0, halves_fail = 0, trusted_superior = 0;
};

// Sparse-3, relabelled as a soft row at two experts, is not found superior.
bool RelabelledFails(RegimeTable table) {
  for (size_t s = 0; s < table.sparse.size(); ++s) {
    table.loss[s] = {table.sparse[s][2]};
    table.active[s] = {2};
  }
  const RegimeDistances distances =
      DistancesFromCurve(table, FrozenRegime().exponents);
  return DecideRegime({ReadingOf(distances.linear, FrozenRegime().confidence),
                       ReadingOf(distances.smooth, FrozenRegime().confidence)},
                      FrozenRegime().margin) != RegimeStatus::kSuperior;
}

// The first and last seeds' distances of the row at 1.77 experts differ.
bool HalvesFail(RegimeTable table) {
  for (size_t s = 0; s < table.sparse.size(); ++s) {
    table.loss[s] = {table.loss[s][1]};
    table.active[s] = {table.active[s][1]};
  }
  const std::vector<double> all =
      DistancesFromCurve(table, FrozenRegime().exponents).linear;
  const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
  const Interval interval =
      DifferenceOf({all.begin(), all.begin() + half},
                   {all.begin() + half, all.end()},
                   1 - FrozenRegime().controls.halves_level)
          .interval;
  return interval.low > 0 || interval.high < 0;
}

// with_controls: optional, since they take most of the time.
Shares JudgeMany(double effect, bool with_controls) {
  Shares shares;
  constexpr double kOne = 1.0 / kRecords;
  for (uint32_t record = 0; record < kRecords; ++record) {
    const RegimeTable table = Draw(record, effect);
    const RegimeDistances distances =
        DistancesFromCurve(table, FrozenRegime().exponents);
    const bool relabelled = with_controls && RelabelledFails(table);
    const bool halves = with_controls && HalvesFail(table);
    if (relabelled) shares.relabelled_fails += kOne;
    if (halves) shares.halves_fail += kOne;
    const RegimeReading linear =
        ReadingOf(distances.linear, FrozenRegime().confidence);
    const RegimeReading smooth =
        ReadingOf(distances.smooth, FrozenRegime().confidence);
    switch (DecideRegime({linear, smooth}, FrozenRegime().margin)) {
      case RegimeStatus::kSuperior:
        shares.superior += kOne;
        if (!relabelled && !halves) shares.trusted_superior += kOne;
        break;
      case RegimeStatus::kMatches:
        shares.matches += kOne;
        break;
      case RegimeStatus::kInferior:
        shares.inferior += kOne;
        break;
      default:
        shares.undecided += kOne;
    }
    auto covers = [&](const Interval& interval) {
      return interval.low <= effect && effect <= interval.high;
    };
    if (covers(linear.interval)) shares.linear_covered += kOne;
    if (covers(smooth.interval)) shares.covered += kOne;
  }
  return shares;
}

// 95 %, within the range of 94 to 96 % set beforehand.
void ExpectCoverage(const Shares& shares) {
  EXPECT_GT(shares.covered, 0.94);
  EXPECT_LT(shares.covered, 0.96);
}

TEST(RegimePlanted, NoEffectIsSeldomFoundSuperior) {
  EXPECT_GE(FrozenRegime().RowsOf("primary")[0]->seeds.size(), kSeeds);
  const Shares shares = JudgeMany(0, false);
  EXPECT_LT(shares.superior, 0.05);
  // One side of a 95 % interval, and both readings must agree.
  EXPECT_NEAR(shares.superior, 0.0245, ThreeErrors(0.0245));
  EXPECT_LT(shares.inferior, 0.025 + ThreeErrors(0.025));
  // FORMAT.md, "The regime experiment", says how often.
  EXPECT_NEAR(shares.matches, 0.92, 0.01);
  EXPECT_NEAR(shares.undecided, 0.05, 0.01);
  EXPECT_NEAR(shares.linear_covered, 0.76, 0.01);
  ExpectCoverage(shares);
}

TEST(RegimePlanted, OneHundredthIsFoundInNineOfTenRecords) {
  const Shares shares = JudgeMany(-0.01, true);
  EXPECT_GT(shares.superior, 0.90);
  // From 120,000 records of another generator (numpy).
  EXPECT_NEAR(shares.superior, 0.946, ThreeErrors(0.946));
  EXPECT_GT(shares.trusted_superior, 0.90);
  EXPECT_NEAR(shares.relabelled_fails, 0.017, 0.003);
  EXPECT_NEAR(shares.halves_fail, 0.01, ThreeErrors(0.01));
  EXPECT_EQ(shares.inferior, 0);
  ExpectCoverage(shares);
}

TEST(RegimePlanted, TwoHundredthsBehindIsNeverCalledAMatch) {
  const Shares shares = JudgeMany(0.02, false);
  EXPECT_EQ(shares.superior, 0);
  EXPECT_LT(shares.matches, 0.001);
  EXPECT_GT(shares.inferior, 0.99);
  ExpectCoverage(shares);
}

}  // namespace
}  // namespace softmoe::golden
