// SPDX-License-Identifier: Apache-2.0
#include "kernels/isa.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::kernels {
namespace {

TEST(Isa, IsTheBestOfTheMachineUnlessAnotherIsChosen) {
  const Isa best = IsaAvailable(Isa::kV4) ? Isa::kV4 : Isa::kV3;
  EXPECT_EQ(ActiveIsa(), best);
  SelectIsa("v3");
  EXPECT_EQ(ActiveIsa(), Isa::kV3);
  if (best == Isa::kV3) {
    EXPECT_NE(MessageOf<EnvironmentError>([] { SelectIsa("v4"); }), kNoError);
  } else {
    SelectIsa("v4");
    EXPECT_EQ(ActiveIsa(), Isa::kV4);
  }
  EXPECT_TRUE(Says(MessageOf<ConfigError>([] { SelectIsa("v5"); }), "v5"));
  SelectIsa("");
  EXPECT_EQ(ActiveIsa(), best);
}

}  // namespace
}  // namespace softmoe::kernels
