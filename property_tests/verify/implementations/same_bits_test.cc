// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

CaseResult Check(const std::string& impl) {
  const auto implementation = MakeImplementation(impl);
  return CheckCase(
      ParseCase("op=lapsum fill=generic rows=5 num_experts=13 "
                "mean_active=2.375 temperature=1.75 spread=1 impl=" +
                impl),
      *implementation);
}

TEST(SameBits, PassesWhereTheyAre) {
  const CaseResult result = Check("same:shim,cpu:v3");
  EXPECT_EQ(result.status, Status::kPass) << result.reason;
}

// Within the bounds of verify, but not the same.
TEST(SameBits, FailsWhereAnElementIsNearlyTheSame) {
  EXPECT_EQ(Check("reference_f32").status, Status::kPass);
  const CaseResult result = Check("same:reference_f32,shim");
  EXPECT_EQ(result.status, Status::kFail);
  EXPECT_TRUE(Says(result.reason, "has other bits than on shim: ",
                   " elements, first [", ", not "))
      << result.reason;

  const CaseResult other = Check("same:shim,faulty:one_nan:weights:shim");
  EXPECT_EQ(other.output, "weights");
  EXPECT_TRUE(Says(other.reason, "1 of 65 elements, first [64]: ", ", not nan"))
      << other.reason;
}

// The results are judged as well, and all schedules run.
TEST(SameBits, IsNoExcuse) {
  EXPECT_EQ(
      Check("same:faulty:sign:weights:shim,faulty:sign:weights:shim").status,
      Status::kFail);
  EXPECT_EQ(MakeImplementation("same:shim,cpu:v3")->schedules(),
            MakeImplementation("shim")->schedules());
}

TEST(SameBits, RunsWhatBothOffer) {
  EXPECT_EQ(Check("same:cpu:v3,shim:bf16").status, Status::kUnsupported);
  EXPECT_EQ(Check("same:shim:bf16,cpu:v3").status, Status::kUnsupported);
  EXPECT_EQ(MakeImplementation("same:shim:bf16,ptx:bf16")->name(),
            "same:shim:bf16,ptx:bf16");
}

TEST(SameBits, RefusesOtherWords) {
  EXPECT_TRUE(
      Says(MessageOf<ConfigError>([] { MakeSameBitsImplementation("cuda"); }),
           "same:IMPL,IMPL"));
  EXPECT_TRUE(Says(
      MessageOf<ConfigError>([] { MakeSameBitsImplementation("shim,shym"); }),
      "unknown implementation 'shym'", "shim"));
}

}  // namespace
}  // namespace softmoe::verify
