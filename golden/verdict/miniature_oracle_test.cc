// SPDX-License-Identifier: Apache-2.0
//
// The judge against golden/oracles/miniature.json: made-up grids judged by a
// Python program that shares only FORMAT.md, "Claims in miniature", and the
// margins with this one (golden/oracles/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/files/paths.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {
namespace {

using nlohmann::json;

// Losses near 3 are summed a hundred at a time, so an effect is known to about
// 100 * 3 * 2^-52 = 7e-14, and the file has 13 digits of numbers below 10;
// relative to noise of 1e-3 or more, that is less than 1e-9.
constexpr double kEffect = 1e-12;
constexpr double kNoise = 1e-9;
// With the error of t = effect / error, 1e-10 of it, the logarithm of a tail of
// Student's t moves by at most 1 + freedom, here up to 33, as much; the two
// distribution functions are good for 1e-9.
constexpr double kTail = 1e-8;

void ExpectWithin(double ours, double theirs, double relative,
                  const char* what) {
  EXPECT_LE(std::abs(ours - theirs), relative * std::abs(theirs) + kEffect)
      << what << ": " << ours << ", the oracle has " << theirs;
}

double NumberOf(const json& run, const char* name) {
  return run.contains(name) ? run.at(name).get<double>()
                            : std::numeric_limits<double>::quiet_NaN();
}

MiniatureRun RunOf(const json& made) {
  MiniatureRun run;
  run.row = made.at("row");
  run.corpus = made.at("corpus");
  run.seed = made.at("seed");
  run.loss = NumberOf(made, "loss");
  run.infer_ae = NumberOf(made, "infer_ae");
  run.load_variance = NumberOf(made, "load_variance");
  run.mean_cap = NumberOf(made, "mean_cap");
  run.load_balance = made.at("load_balance");
  for (const json& point : made.value("allocation", json::array())) {
    run.allocation.push_back({point.at(0), point.at(1), point.at(2)});
  }
  for (const json& point : made.value("at_tau", json::array())) {
    run.at_tau.push_back({point.at(0), point.at(1), point.at(2)});
  }
  return run;
}

MiniatureResults ResultsOf(const json& grid) {
  MiniatureResults results;
  for (const json& run : grid.at("runs")) results.runs.push_back(RunOf(run));
  for (const json& each : grid.at("throughput")) {
    results.throughput.push_back({each.at(0), each.at(1), each.at(2)});
  }
  return results;
}

void CompareCase(const MiniatureCase& ours, const json& oracle) {
  SCOPED_TRACE(ours.corpus + " " + ours.label);
  EXPECT_EQ(ours.corpus, oracle.at("corpus"));
  EXPECT_TRUE(ours.label.starts_with(oracle.at("row").get<std::string>()));
  ASSERT_EQ(ours.problem.empty(), oracle.at("tested").get<bool>())
      << ours.problem;
  if (!ours.problem.empty()) return;
  EXPECT_EQ(ours.seeds, oracle.at("seeds"));
  ExpectWithin(ours.estimate, oracle.at("effect"), 0, "effect");
  ExpectWithin(ours.seed_error, oracle.at("error"), kNoise, "error");
  ExpectWithin(ours.freedom, oracle.at("freedom"), kNoise, "freedom");
  ExpectWithin(ours.interval.low, oracle.at("low"), kNoise, "low");
  ExpectWithin(ours.interval.high, oracle.at("high"), kNoise, "high");
  ExpectWithin(ours.p_shown, oracle.at("holds"), kTail, "p holds");
  ExpectWithin(ours.p_contradicted, oracle.at("reversed"), kTail, "p reversed");
  std::vector<std::string> own = ours.own_deviation;
  std::ranges::sort(own);
  EXPECT_EQ(own, oracle.at("own").get<std::vector<std::string>>());
  EXPECT_EQ(ours.left_out.size(), oracle.at("left_out").get<size_t>());
  EXPECT_EQ(ours.not_pooled, oracle.at("not_pooled").get<bool>());
  ExpectWithin(ours.bartlett, oracle.at("bartlett"), kTail, "Bartlett's p");
  ExpectWithin(ours.own_error, oracle.at("own_error"), kNoise, "own error");
  ExpectWithin(ours.own_freedom, oracle.at("own_freedom"), kNoise,
               "own freedom");
  ASSERT_EQ(ours.cap_rise.has_value(), oracle.contains("cap_rise"));
  if (ours.cap_rise) {
    ExpectWithin(*ours.cap_rise, oracle.at("cap_rise"), 0, "cap rise");
  }
}

void CompareCases(const std::vector<MiniatureCase>& ours, const json& oracle) {
  ASSERT_EQ(ours.size(), oracle.size());
  for (size_t i = 0; i < ours.size(); ++i) CompareCase(ours[i], oracle[i]);
}

// "3 of 4 cases point to the claim, ...": only if the verdict says so.
void CompareCount(const MiniatureMeasureVerdict& ours, const json& oracle) {
  if (ours.status == MiniatureStatus::kNotTestable ||
      ours.status == MiniatureStatus::kReported) {
    return;
  }
  int tested = 0, points = 0;
  for (const json& each : oracle.at("cases")) {
    if (!each.at("tested").get<bool>()) continue;
    ++tested;
    points += each.at("points").get<bool>() ? 1 : 0;
  }
  const std::string expected = std::to_string(points) + " of " +
                               std::to_string(tested) +
                               " cases point to the claim";
  EXPECT_TRUE(ours.reason.starts_with(expected))
      << ours.reason << "\nthe oracle: " << expected;
}

void CompareMeasure(const MiniatureMeasureVerdict& ours, const json& oracle) {
  SCOPED_TRACE(ours.id);
  EXPECT_EQ(ours.id, oracle.at("id"));
  EXPECT_EQ(MiniatureStatusName(ours.status), oracle.at("status"));
  EXPECT_EQ(ours.cases_needed, oracle.at("needed"));
  ExpectWithin(ours.p, oracle.at("p"), kTail, "p");
  EXPECT_EQ(ours.could_be_shown, oracle.value("could_be_shown", false));
  ASSERT_EQ(ours.p_not_pooled.has_value(), oracle.contains("p_not_pooled"));
  if (ours.p_not_pooled) {
    ExpectWithin(*ours.p_not_pooled, oracle.at("p_not_pooled"), kTail,
                 "p not pooled");
  }
  CompareCases(ours.cases, oracle.at("cases"));
  CompareCases(ours.parts, oracle.at("parts"));
  CompareCount(ours, oracle);
}

void CompareResolution(const MiniatureResolution& ours, const json& oracle) {
  SCOPED_TRACE("resolution of " + ours.corpus);
  EXPECT_EQ(ours.corpus, oracle.at("corpus"));
  EXPECT_EQ(ours.rows, oracle.at("rows"));
  EXPECT_EQ(ours.seeds, oracle.at("seeds"));
  ExpectWithin(ours.plain, oracle.at("deviation"), kNoise, "deviation");
  ExpectWithin(ours.paired, oracle.at("paired"), kNoise, "paired");
  ExpectWithin(ours.paired_freedom, oracle.at("freedom"), kNoise, "freedom");
  ExpectWithin(ours.one_test, oracle.at("one_test"), kNoise, "one test");
  ExpectWithin(ours.family, oracle.at("family"), kNoise, "all measures");
}

TEST(MiniatureOracle, JudgesEveryMadeUpGridAlike) {
  std::ifstream file(RunfilePath("golden/oracles/miniature.json"));
  const json grids = json::parse(file).at("grids");
  ASSERT_EQ(grids.size(), 25u);
  for (const json& grid : grids) {
    SCOPED_TRACE(grid.at("name").get<std::string>());
    const MiniatureVerdicts ours =
        JudgeMiniature(FrozenClaims(), ResultsOf(grid));
    std::vector<MiniatureMeasureVerdict> measures;
    ASSERT_EQ(ours.claims.size(), grid.at("claims").size());
    for (size_t c = 0; c < ours.claims.size(); ++c) {
      const MiniatureVerdict& claim = ours.claims[c];
      EXPECT_EQ(claim.id, grid.at("claims")[c].at("id"));
      EXPECT_EQ(MiniatureStatusName(claim.leaning),
                grid.at("claims")[c].at("leaning"))
          << claim.id;
      measures.insert(measures.end(), claim.measures.begin(),
                      claim.measures.end());
    }
    ASSERT_EQ(measures.size(), grid.at("measures").size());
    for (size_t m = 0; m < measures.size(); ++m) {
      CompareMeasure(measures[m], grid.at("measures")[m]);
    }
    ASSERT_EQ(ours.resolution.size(), grid.at("resolution").size());
    for (size_t r = 0; r < ours.resolution.size(); ++r) {
      CompareResolution(ours.resolution[r], grid.at("resolution")[r]);
    }
  }
}

}  // namespace
}  // namespace softmoe::golden
