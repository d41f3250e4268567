// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/diagnose.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {
namespace {

// The hints for {1, 2, 3}, each wrong by the same factor, as one text.
std::string HintsFor(double factor, Dtype dtype) {
  const ExpectedOutput expected = {
      FromVector(Dtype::kF64, {3}, std::vector{1.0, 2.0, 3.0}),
      std::vector(3, 1e-15),
      "",
      {},
      {}};
  Tensor got = expected.values;
  got.dtype = dtype;
  for (double& x : got.values) x *= factor;
  const Case c = ParseCase("op=add fill=generic size=3 scale=1 impl=spoilt");
  return fmt::format(
      "{}", fmt::join(DiagnoseValues(c, TensorMap(), got, expected), "; "));
}

TEST(Diagnose, NamesARatioThatIsNotOne) {
  EXPECT_EQ(HintsFor(1.001, Dtype::kF64),
            "got/expected is 1.001 for all of them");
  EXPECT_EQ(HintsFor(1.000001, Dtype::kF64), "");
  EXPECT_EQ(HintsFor(1.000001, Dtype::kF32), "");
}

TEST(Diagnose, ShowsDoublesInFullWhereNineDigitsAreEqual) {
  EXPECT_EQ(HintsFor(1 + 0x1p-40, Dtype::kF64),
            "in full: got 3.0000000000027285, expected 3, bound 1e-15");
  EXPECT_EQ(HintsFor(1 + 0x1p-40, Dtype::kF32), "");
}

}  // namespace
}  // namespace softmoe::verify
