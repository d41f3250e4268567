// SPDX-License-Identifier: Apache-2.0
#include "core/normals.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace softmoe {
namespace {

// Printed results depend on these draws (experiments/report/power.h).
TEST(Normals, AreTheFirstOfEachBlockOfTheirSequence) {
  Normals normals(/*seed=*/7, /*sequence=*/3);
  for (uint64_t i = 0; i < 4; ++i) {
    const auto words = PhiloxWords({.seed = 7, .step = 3}, i);
    EXPECT_EQ(normals.Next(), NormalsFromWords(words[0], words[1])[0]);
  }
  EXPECT_NE(Normals(7, 4).Next(), Normals(7, 3).Next());
  EXPECT_NE(Normals(8, 3).Next(), Normals(7, 3).Next());
}

}  // namespace
}  // namespace softmoe
