// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/evaluation_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::trainer {
namespace {

std::string Refusal(const std::vector<double>& factors) {
  try {
    CheckEvaluationPlan({.inference_tau_factors = factors});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(EvaluationPlan, TakesAscendingFactors) {
  EXPECT_EQ(Refusal({}), "accepted");
  // tau = 0 keeps everything up to the cap.
  EXPECT_EQ(Refusal({0, 0.5, 1, 1.5, 2}), "accepted");
}

TEST(EvaluationPlan, RefusesWhatCannotBeMeant) {
  const auto expect = [](const std::vector<double>& factors,
                         const std::string& reason) {
    const std::string message = Refusal(factors);
    EXPECT_NE(message.find(reason), std::string::npos) << message;
  };
  expect({0.5, -1}, "-1 is not a multiple of tau");
  expect({std::nan("")}, "nan is not a multiple of tau");
  expect({1, INFINITY}, "inf is not a multiple of tau");
  expect({1, 1}, "1 comes after 1");
  expect({2, 0.5}, "0.5 comes after 2");
}

}  // namespace
}  // namespace softmoe::trainer
