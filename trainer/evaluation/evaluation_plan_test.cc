// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/evaluation_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

std::string Refusal(const std::vector<double>& factors) {
  return MessageOf<ConfigError>(
      [&] { CheckEvaluationPlan({.inference_tau_factors = factors}); });
}

TEST(EvaluationPlan, TakesAscendingFactors) {
  EXPECT_EQ(Refusal({}), kNoError);
  // tau = 0 keeps everything up to the cap.
  EXPECT_EQ(Refusal({0, 0.5, 1, 1.5, 2}), kNoError);
}

TEST(EvaluationPlan, RefusesWhatCannotBeMeant) {
  const auto expect = [](const std::vector<double>& factors,
                         const std::string& reason) {
    const std::string message = Refusal(factors);
    EXPECT_TRUE(Says(message, reason));
  };
  expect({0.5, -1}, "-1 is not a multiple of tau");
  expect({std::nan("")}, "nan is not a multiple of tau");
  expect({1, INFINITY}, "inf is not a multiple of tau");
  expect({1, 1}, "1 comes after 1");
  expect({2, 0.5}, "0.5 comes after 2");
}

}  // namespace
}  // namespace softmoe::trainer
