// SPDX-License-Identifier: Apache-2.0
//
// The reference's derivatives, against which everything else is judged, are the
// derivatives of its functions, on cases that RapidCheck draws afresh; and
// every derivative is really checked.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdio>
#include <functional>
#include <utility>

#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/gradients/dual_forward.h"
#include "property_tests/verify/gradients/gradient_check.h"

namespace softmoe::verify {
namespace {

// Judges case `number` of a seed.
Suite Judge(const std::string& op, const std::string& impl, uint64_t seed,
            uint32_t number, const CasePattern& fixed = {},
            std::function<void(const CaseResult&)> on_result = {}) {
  CampaignOptions options;
  options.on_result = std::move(on_result);
  options.ops = {op};
  options.impls = {impl};
  options.fixed = fixed;
  options.seed = seed;
  options.first = number;
  options.cases = 1;
  options.shrink = false;
  return RunCampaign(ForGradients(std::move(options)));
}

class EveryGradient : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryGradient, OfTheReferenceIsTheDerivative) {
  ASSERT_TRUE(FindDualForward(GetParam()))
      << "dual_forward.cc has no entry for " << GetParam()
      << ", whose operation has differentiable() inputs";
  Suite suite;
  const bool holds = rc::check(GetParam(), [&] {
    const Suite result =
        Judge(GetParam(), "reference_f64", *rc::gen::arbitrary<uint64_t>(), 0,
              {}, [&](const CaseResult& one) { suite.Add(one); });
    for (const Failure& failure : result.failures()) {
      RC_FAIL(FailureText(failure));
    }
  });
  EXPECT_TRUE(holds);
  EXPECT_TRUE(suite.Mistrusted().empty()) << SuiteText(suite);
  std::fputs(SuiteText(suite).c_str(), stdout);
}

// At least one of a few cases finds a small fault in the gradient.
TEST_P(EveryGradient, ThatIsWrongByOnePartInTenThousandIsFound) {
  for (const std::string& input : FindOperation(GetParam()).differentiable()) {
    const std::string impl =
        "faulty:one_part_in_1e4:d_" + input + ":reference_f64";
    Suite result;
    for (uint32_t number = 0;
         number < 8 && result.exit_code() != ExitCode::kFailed; ++number) {
      result = Judge(GetParam(), impl, 20260120, number, {{"fill", "generic"}});
    }
    EXPECT_EQ(result.exit_code(), ExitCode::kFailed) << input << "\n"
                                                     << SuiteText(result);
  }
}

std::vector<std::string> Differentiable() {
  std::vector<std::string> names;
  for (const Operation* op : Operations()) {
    if (!op->differentiable().empty()) names.push_back(op->name());
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EveryGradient,
                         ::testing::ValuesIn(Differentiable()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace softmoe::verify
