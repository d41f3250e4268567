// SPDX-License-Identifier: Apache-2.0
//
// The bounds of rows of scores are tested near their limits: rows for which
// roundings add up, which draws do not find, and outputs that are barely wrong.
#include "property_tests/verify/operations/row_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/replay.h"

namespace softmoe::verify {
namespace {

// Scores so close to each other that the exponential of a gap of m + r units of
// 2^-24 is rounded to 1 - m units. Built from the lowest score up, from 39 m
// and two r: those whose exponential and product err most towards `sign`.
std::vector<double> RowOfEqualErrors(int64_t size, double sign) {
  std::vector<double> scores = {0};
  float sum = 0;  // of the exponentials below, times the gap's
  while (std::ssize(scores) < size) {
    double largest = -1, gap = 0;
    float next = 0;
    for (int m = 1; m < 40; ++m) {
      for (const double r : {-15.0 / 32, 15.0 / 32}) {
        const double exact = std::exp(-(m + r) * kFloatUnit);
        const float product =
            (1 + sum) * static_cast<float>(1 - m * kFloatUnit);
        const double error = sign * (product - (1 + double{sum}) * exact);
        if (error <= largest) continue;
        largest = error;
        gap = (m + r) * kFloatUnit;
        next = product;
      }
    }
    scores.push_back(scores.back() + gap);
    sum = next;
  }
  return scores;
}

TEST(RowBounds, CoverErrorsThatAddUp) {
  for (const std::string impl : {"cpu:v3", "shim"}) {
    const auto implementation = MakeImplementation(impl);
    for (const double sign : {-1.0, 1.0}) {
      for (const std::string k : {"0.5", "1", "128"}) {
        const Case c = ParseCase(
            "op=lapsum fill=generic rows=1 num_experts=256 spread=1 "
            "temperature=1 mean_active=" +
            k + " impl=" + impl);
        TensorMap inputs = InputsOf(FindOperation("lapsum"), c);
        inputs["scores"].values = RowOfEqualErrors(256, sign);
        const CaseResult result = CheckInputs(c, inputs, *implementation);
        EXPECT_FALSE(result.failed()) << ReproLine(result);
      }
    }
  }
}

// The exponentials of all but the dominant score are rounded away beside 1.
TEST(RowBounds, CoverASumThatLosesAllItsTerms) {
  reference::Vector scores = reference::Vector::Constant(256, -16.640625);
  scores[0] = 0;
  float sum = 0;
  for (const double score : scores) sum += std::exp(static_cast<float>(score));
  ASSERT_EQ(sum, 1);
  // As no weight is above 1/2, the weights are k softmax(scores).
  const double k = 0.5;
  const Bounded bound = BoundLapSumRow(scores, k, 1).weights[0];
  EXPECT_LE(std::abs(k / sum - bound.value), bound.error);
}

TEST(RowBounds, TellTwoMeanActivesApart) {
  const std::vector<double> row = RowOfEqualErrors(256, 1);
  const auto scores = Eigen::Map<const reference::Vector>(row.data(), 256);
  const LapSumRow bound = BoundLapSumRow(scores, 128, 1);
  const reference::Vector other =
      reference::SolveLapSum(scores, 128 * (1 + 5e-5), 1).weights;
  EXPECT_GT(std::abs(other[0] - bound.weights[0].value),
            bound.weights[0].error);
}

// Half of the gradient flows to weights that are 0 in float: it may be lost,
// but nothing between the two results is right.
TEST(RowBounds, AGradientOfFlushedWeightsIsThereOrNot) {
  for (const std::string fault : {"none", "zero", "twice"}) {
    for (const std::string base : {"cpu:v3", "reference_f32"}) {
      const Case c = ParseCase(
          "op=lapsum fill=wide_gap rows=6 num_experts=8 spread=1 temperature=1 "
          "mean_active=3 impl=faulty:" +
          fault + ":d_mean_active:" + base);
      const CaseResult result = CheckCase(c, *MakeImplementation(c.impl));
      EXPECT_EQ(result.failed(), fault != "none") << ReproLine(result);
    }
  }
}

// The whole gradient flows to one weight of 1e-44, which others may flush.
TEST(RowBounds, AGradientOfASubnormalWeightIsThere) {
  for (const std::string fault : {"none", "zero"}) {
    const Case c = ParseCase(
        "op=lapsum fill=wide_gap rows=2 num_experts=8 spread=1 temperature=1 "
        "mean_active=3 simplify=d_weights:only8 impl=faulty:" +
        fault + ":d_mean_active:reference_f32");
    const CaseResult result = CheckCase(c, *MakeImplementation(c.impl));
    EXPECT_EQ(result.failed(), fault != "none") << ReproLine(result);
  }
}

// The third weight, 3e-39, is 0 in float, so its expert is not active. Its
// cotangent equals the mean: v - m is nearly 0, but 0 - m is not.
TEST(RowBounds, AFlushedWeightTakesItsCotangentAlong) {
  for (const std::string impl : {"cpu:v3", "shim"}) {
    for (const std::string fault : {"none", "twice"}) {
      const Case c = ParseCase(
          "op=lapsum fill=generic rows=1 num_experts=3 mean_active=1 spread=1 "
          "temperature=0.0625 impl=faulty:" +
          fault + ":d_scores:" + impl);
      TensorMap inputs = InputsOf(FindOperation(c.op), c);
      inputs["scores"].values = {0.25, 0, -5.375};
      inputs["d_weights"].values = {2000, 1000, 1500};
      const CaseResult result =
          CheckInputs(c, inputs, *MakeImplementation(c.impl));
      EXPECT_EQ(result.failed(), fault != "none") << ReproLine(result);
    }
  }
}

// Cases keep k below the number of experts n, where a row has a root. From n
// on, the kernels solve for one float less (kernels/router_block.h): a row
// lacks only n 2^-24, and a weight near 1 is rounded by 3 u.
TEST(RowBounds, FromAllExpertsOnEveryWeightIsOne) {
  for (const std::string impl : {"cpu:v3", "shim"}) {
    for (const std::string fill : {"generic", "ties", "plateau"}) {
      const Case c = ParseCase("op=lapsum rows=9 num_experts=8 spread=1 " +
                               ("temperature=1.7 mean_active=3 fill=" + fill) +
                               " impl=" + impl);
      const Operation& op = FindOperation(c.op);
      TensorMap inputs = InputsOf(op, c);
      for (const double k : {8.0, 8.5, 1e6}) {
        inputs["mean_active"].values = {k};
        const TensorMap got = MakeImplementation(c.impl)->Run(op, c, inputs, 0);
        for (const double p : At(got, "weights").values) {
          EXPECT_LE(p, 1) << impl << " " << fill << " k=" << k;
          EXPECT_GE(p, 1 - (8 + 3) * kFloatUnit)
              << impl << " " << fill << " k=" << k;
        }
      }
    }
  }
}

// If a gap is so wide that float flushes p to 0, tokens may be missing.
TEST(RowBounds, ATokenMayBeMissingFromACountButNotTooMany) {
  const Operation& op = FindOperation("balance_sums");
  const Case c = ParseCase(
      "op=balance_sums fill=wide_gap rows=6 num_experts=8 count_top=8 spread=1 "
      "temperature=1 mean_active=3 basis=soft_weights");
  const TensorMap inputs = InputsOf(op, c);
  const ExpectedOutput counts = ExpectOf(op, c, inputs, {}).outputs["counts"];
  const auto doubtful = std::ranges::max_element(counts.bounds);
  const auto e = doubtful - counts.bounds.begin();
  ASSERT_GT(*doubtful, 0);
  for (const double change : {-1.0, 1.0}) {
    TensorMap got = {{"counts", counts.values}};
    got["counts"].values[e] += change;
    const double bound =
        ExpectOf(op, c, inputs, got).outputs["counts"].bounds[e];
    EXPECT_EQ(bound, change < 0 ? *doubtful : 0);
  }
}

}  // namespace
}  // namespace softmoe::verify
