// SPDX-License-Identifier: Apache-2.0
//
// Each way of checking finds a wrong derivative: a missing factor 1/T, a wrong
// sign, LapSum's implicit term dropped, dk missing, one part in 10^4.
// (gradient_property_test shows that the reference's derivatives are right.)
#include "property_tests/verify/gradients/gradient_check.h"

#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/commands.h"
#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/engine/spoilt.h"
#include "reference/lapsum.h"

namespace softmoe::verify {
namespace {

Suite Judge(const std::string& op, const std::string& impl, int64_t cases,
            const CasePattern& fixed = {}, bool shrink = false) {
  CampaignOptions options;
  options.ops = {op};
  options.impls = {impl};
  options.fixed = fixed;
  options.seed = 20260120;
  options.cases = cases;
  options.shrink = shrink;
  return RunCampaign(ForGradients(options));
}

TEST(GradientCheck, ChecksItself) { CheckGradientSelf(); }

struct Plant {
  const char* name;
  const char* op;
  const char* fault;  // FAULT:OUTPUT
  const char* hint;
};
class PlantedDerivative : public ::testing::TestWithParam<Plant> {};

TEST_P(PlantedDerivative, IsFoundShrunkAndExplained) {
  const Plant& plant = GetParam();
  const Suite result =
      Judge(plant.op, std::string("faulty:") + plant.fault + ":reference_f64",
            4, {}, /*shrink=*/true);
  ASSERT_GE(result.failures().size(), 1u) << SuiteText(result);
  const CaseResult& smallest = result.failures().front().smallest;
  EXPECT_EQ(smallest.command, "grad");
  EXPECT_LE(smallest.c.Size("rows"), 2) << CaseText(smallest.c);
  EXPECT_LE(smallest.c.Size("num_experts"), 3) << CaseText(smallest.c);
  bool hinted = false;
  for (const std::string& hint : smallest.hints) {
    hinted = hinted || hint.find(plant.hint) != std::string::npos;
  }
  EXPECT_TRUE(hinted) << FailureText(result.failures().front());

  // With `verify grad` the line finds the failure again; other commands refuse
  // it.
  const std::string line = ReproLine(smallest);
  EXPECT_TRUE(Says(line, "verify grad op="));
  EXPECT_THROW(StripRepro(line), ConfigError);
  const Case again = ParseCase(StripRepro(line, "grad"));
  EXPECT_EQ(again, smallest.c);
  const auto implementation = MakeImplementation(again.impl);
  EXPECT_EQ(ReproLine(CheckGradients(again, *implementation)), line);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedDerivative,
    ::testing::Values(
        Plant{"FactorOneOverT", "lapsum", "times_temperature:d_scores",
              "temperature"},
        Plant{"Sign", "lapsum", "sign:d_temperature", "the sign is flipped"},
        Plant{"DkMissing", "lapsum", "zero:d_mean_active", "zero where"},
        Plant{"RouterDkMissing", "router", "zero:d_mean_active", "zero where"},
        Plant{"RouterSign", "router", "sign:d_scores", "the sign is flipped"}),
    [](const auto& info) { return std::string(info.param.name); });

// d_r_i = f_i/T v_i treats the root as a constant. Cotangents that are all
// equal cannot show this.
Tensor WithoutImplicitTerm(const TensorMap& inputs) {
  const reference::Matrix scores = ToMatrix(At(inputs, "scores"));
  const reference::Matrix v = ToMatrix(At(inputs, "d_weights"));
  const double temperature = ScalarOf(inputs, "temperature");
  reference::Matrix d_scores(scores.rows(), scores.cols());
  for (int64_t t = 0; t < scores.rows(); ++t) {
    const reference::LapSum row = reference::SolveLapSum(
        scores.row(t), ScalarOf(inputs, "mean_active"), temperature);
    d_scores.row(t) =
        row.densities.transpose().cwiseProduct(v.row(t)) / temperature;
  }
  return ToTensor(d_scores, At(inputs, "scores").shape);
}

TEST(GradientCheck, FindsThatTheImplicitTermIsDropped) {
  Spoilt wrong("reference_f64",
               [](const TensorMap& inputs, TensorMap& outputs, int) {
                 outputs["d_scores"] = WithoutImplicitTerm(inputs);
               });
  for (const std::string fill : {"generic", "breakpoint", "ties"}) {
    const CaseResult result = CheckGradients(
        ParseCase("op=lapsum rows=3 num_experts=9 mean_active=2.5 spread=1 "
                  "temperature=1.7 fill=" +
                  fill),
        wrong);
    EXPECT_TRUE(result.failed()) << CaseResultText(result);
  }
}

// The root lies on all scores: central differences lose their order, but the
// two one-sided ones together do not, and a derivative that is wrong by one
// part in 10^4 is still found.
TEST(GradientCheck, IsSharpAtABreakpoint) {
  const std::string text =
      "op=lapsum fill=all_equal rows=1 num_experts=6 mean_active=3 spread=1 "
      "temperature=1.7 seed=3 impl=";
  int64_t kinks = 0;
  for (const bool healthy : {true, false}) {
    const std::string impl =
        healthy ? "reference_f64"
                : "faulty:one_part_in_1e4:d_scores:reference_f64";
    const auto implementation = MakeImplementation(impl);
    for (int number = 0; number < 5; ++number) {
      const CaseResult result = CheckGradients(
          ParseCase(text + impl + " case=" + std::to_string(number)),
          *implementation);
      EXPECT_EQ(result.failed(), !healthy) << CaseResultText(result);
      for (const OutputResult& output : result.outputs) {
        kinks += output.convergence.kinks;
        EXPECT_EQ(output.convergence.undecided, 0) << output.output;
      }
    }
  }
  EXPECT_GT(kinks, 0);
}

// Jumps of selections are excluded, as of an expert exactly at its cutoff.
TEST(GradientCheck, KeepsTheSelectionAtTheCutoffAndAtTheCap) {
  const auto implementation = MakeImplementation("reference_f64");
  for (const std::string fill :
       {"cutoff_exact", "cap_reached", "ties", "none_active"}) {
    const CaseResult result = CheckGradients(
        ParseCase("op=router kind=soft fallback=top1 rows=4 num_experts=8 "
                  "max_active=3 mean_active=2.5 tau=1.25 spread=1 "
                  "temperature=0.7 fill=" +
                  fill),
        *implementation);
    EXPECT_EQ(result.status, Status::kPass) << CaseResultText(result);
  }
}

TEST(GradientCheck, SaysThatThereIsNothingToDifferentiate) {
  const auto implementation = MakeImplementation("reference_f64");
  EXPECT_EQ(
      CheckGradients(ParseCase("op=gemm m=2 n=2 k=2"), *implementation).status,
      Status::kUnsupported);
}

}  // namespace
}  // namespace softmoe::verify
