// SPDX-License-Identifier: Apache-2.0
//
// The reference's LapSum against golden/oracles/lapsum.h5: cases solved with
// 110 digits by another program in another language (golden/oracles/README.md).
//
// The acceptance numbers are those of DESIGN.md, ruling 4: weights within
// 2e-15; T dp/dr, T dp/dT and dp/dk within 1e-12 absolute, each times the size
// of the direction or cotangent; dx/dk within 1e-12 relative.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/comparator.h"
#include "core/files/paths.h"
#include "core/hdf5/hdf5_file.h"
#include "reference/lapsum.h"

namespace softmoe::property_tests {
namespace {

using reference::LapSum;
using reference::LapSumGradient;
using reference::Vector;

constexpr double kWeights = 2e-15;
constexpr double kDerivatives = 1e-12;
// Below this the sum of densities is subnormal or 0 and cannot carry 1e-12.
constexpr double kUnrepresentable = 1e300;

struct Oracle {
  Oracle()
      : file(RunfilePath("golden/oracles/lapsum.h5"), {"lapsum-oracle", 1}),
        n(file.ReadDataset<int64_t>("/n").values) {}

  std::vector<double> Read(const std::string& name) const {
    return file.ReadDataset<double>("/" + name).values;
  }

  Hdf5Reader file;
  std::vector<int64_t> n;  // scores of each case
};

const Oracle& TheOracle() {
  static const Oracle oracle;
  return oracle;
}

// Iterates over the cases and the arrays whose entries belong to their scores.
class Cases {
 public:
  bool Next() {
    first_ += index_ < 0 ? 0 : n();
    return ++index_ < static_cast<int64_t>(TheOracle().n.size());
  }
  int64_t index() const { return index_; }
  int64_t n() const { return TheOracle().n[static_cast<size_t>(index_)]; }
  double One(const std::vector<double>& values) const {
    return values[static_cast<size_t>(index_)];
  }
  std::span<const double> Row(const std::vector<double>& values) const {
    return std::span(values).subspan(static_cast<size_t>(first_),
                                     static_cast<size_t>(n()));
  }
  Vector RowVector(const std::vector<double>& values) const {
    const auto row = Row(values);
    return Eigen::Map<const Vector>(row.data(),
                                    static_cast<Eigen::Index>(row.size()));
  }

 private:
  int64_t index_ = -1;
  int64_t first_ = 0;
};

void ExpectWithin(std::span<const double> expected, const Vector& got,
                  double bound, int64_t index, const char* what) {
  const std::vector<double> bounds(expected.size(), bound);
  const Comparison comparison = Compare(
      std::span<const double>(got.data(), static_cast<size_t>(got.size())),
      expected, bounds, {.may_be_constant = true, .may_be_tiny = true});
  EXPECT_TRUE(comparison.ok())
      << what << " of case " << index << ": " << comparison.Text();
}

class LapSumOracle : public ::testing::Test {
 protected:
  const Oracle& oracle_ = TheOracle();
  const std::vector<double> scores_ = oracle_.Read("scores");
  const std::vector<double> k_ = oracle_.Read("mean_active");
  const std::vector<double> temperature_ = oracle_.Read("temperature");

  LapSum Solve(const Cases& cases) const {
    return reference::SolveLapSum(cases.RowVector(scores_), cases.One(k_),
                                  cases.One(temperature_));
  }
};

TEST_F(LapSumOracle, HasTwoThousandCases) {
  EXPECT_GE(oracle_.n.size(), 2000u);
  EXPECT_EQ(k_.size(), oracle_.n.size());
}

// Where the scores have a gap at rank j, the weights depend on k - j, however
// small it is.
TEST_F(LapSumOracle, HasCasesBesideWholeNumbers) {
  int64_t beside = 0;
  for (Cases cases; cases.Next();) {
    const double k = cases.One(k_), whole = std::round(k);
    beside += k != whole && std::abs(k - whole) <= 2e-7 && whole >= 1 &&
              whole < static_cast<double>(cases.n());
  }
  EXPECT_GE(beside, 200);
}

TEST_F(LapSumOracle, Weights) {
  const std::vector<double> weights = oracle_.Read("weights");
  for (Cases cases; cases.Next();) {
    ExpectWithin(cases.Row(weights), Solve(cases).weights, kWeights,
                 cases.index(), "weights");
  }
}

TEST_F(LapSumOracle, RootMovesWithTheMeanOfActiveExperts) {
  const std::vector<double> expected = oracle_.Read("root_d_mean_active");
  int64_t representable = 0;
  for (Cases cases; cases.Next();) {
    const double got =
        reference::LapSumRootGradient(Solve(cases)).d_mean_active;
    const double want = cases.One(expected);
    if (std::abs(want) > kUnrepresentable) {
      EXPECT_LT(got, -kUnrepresentable) << "case " << cases.index();
      continue;
    }
    ++representable;
    EXPECT_LE(std::abs(got - want), kDerivatives * std::abs(want))
        << "case " << cases.index() << ": " << got << " instead of " << want;
  }
  EXPECT_GE(representable, 1500);
}

TEST_F(LapSumOracle, DirectionalDerivatives) {
  const std::vector<double> d_scores = oracle_.Read("direction_scores");
  const std::vector<double> d_k = oracle_.Read("direction_mean_active");
  const std::vector<double> d_t = oracle_.Read("direction_temperature");
  const std::vector<double> expected = oracle_.Read("weights_dot");
  for (Cases cases; cases.Next();) {
    const Vector scores_dot = cases.RowVector(d_scores);
    const double size =
        (scores_dot.cwiseAbs().sum() + std::abs(cases.One(d_t))) /
            cases.One(temperature_) +
        std::abs(cases.One(d_k));
    ExpectWithin(cases.Row(expected),
                 reference::LapSumJvp(Solve(cases), scores_dot, cases.One(d_k),
                                      cases.One(d_t)),
                 kDerivatives * size, cases.index(), "directional derivative");
  }
}

// Row i of the Jacobian, J^T e_i, times the direction is entry i of the
// directional derivative.
TEST_F(LapSumOracle, RowsOfTheJacobian) {
  const std::vector<double> d_scores = oracle_.Read("direction_scores");
  const std::vector<double> d_k = oracle_.Read("direction_mean_active");
  const std::vector<double> d_t = oracle_.Read("direction_temperature");
  const std::vector<double> expected = oracle_.Read("weights_dot");
  for (Cases cases; cases.Next();) {
    const LapSum solution = Solve(cases);
    const Vector scores_dot = cases.RowVector(d_scores);
    Vector got(cases.n());
    for (int64_t i = 0; i < cases.n(); ++i) {
      const LapSumGradient row =
          reference::LapSumVjp(solution, Vector::Unit(cases.n(), i));
      got[i] = row.d_scores.dot(scores_dot) +
               row.d_mean_active * cases.One(d_k) +
               row.d_temperature * cases.One(d_t);
    }
    const double size =
        (scores_dot.cwiseAbs().sum() + std::abs(cases.One(d_t))) /
            cases.One(temperature_) +
        std::abs(cases.One(d_k));
    ExpectWithin(cases.Row(expected), got, kDerivatives * size, cases.index(),
                 "rows of the Jacobian");
  }
}

// Only small cases record the product with the whole Jacobian, J^T v.
TEST_F(LapSumOracle, Gradients) {
  const std::vector<double> cotangents = oracle_.Read("cotangents");
  const std::vector<double> d_scores = oracle_.Read("d_scores");
  const std::vector<double> d_k = oracle_.Read("d_mean_active");
  const std::vector<double> d_t = oracle_.Read("d_temperature");
  int64_t checked = 0;
  for (Cases cases; cases.Next();) {
    if (checked == static_cast<int64_t>(d_k.size())) break;
    const Vector v = cases.RowVector(cotangents);
    const LapSumGradient got = reference::LapSumVjp(Solve(cases), v);
    const double bound = kDerivatives * v.cwiseAbs().sum();
    const double t = cases.One(temperature_);
    ExpectWithin(cases.Row(d_scores), got.d_scores, bound / t, cases.index(),
                 "d_scores");
    EXPECT_LE(std::abs(got.d_mean_active - cases.One(d_k)), bound)
        << "case " << cases.index();
    EXPECT_LE(std::abs(got.d_temperature - cases.One(d_t)), bound / t)
        << "case " << cases.index();
    ++checked;
  }
  EXPECT_GE(checked, 1660);
}

}  // namespace
}  // namespace softmoe::property_tests
