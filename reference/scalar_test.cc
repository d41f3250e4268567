// SPDX-License-Identifier: Apache-2.0
#include "reference/scalar.h"

#include <gtest/gtest.h>

namespace softmoe::reference {
namespace {

TEST(CompensatedSum, KeepsWhatAPlainSumLoses) {
  CompensatedSum sum;
  sum.Add(1);
  for (int i = 0; i < 1000; ++i) sum.Add(0x1p-54);  // each lost by itself
  EXPECT_EQ(sum.Get(), 1 + 1000 * 0x1p-54);
}

TEST(CompensatedSum, KeepsWhatComesBeforeALargerTerm) {
  CompensatedSum sum;  // Kahan's own algorithm returns 0 here
  for (double term : {1.0, 1e100, 1.0, -1e100}) sum.Add(term);
  EXPECT_EQ(sum.Get(), 2);
}

TEST(CompensatedSum, OfNothingIsZero) { EXPECT_EQ(CompensatedSum().Get(), 0); }

}  // namespace
}  // namespace softmoe::reference
