// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/diagnose.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {
namespace {

// The hints for {1, 2, ...}, each wrong by its factor, as one text.
std::string HintsFor(const std::vector<double>& factors,
                     Dtype dtype = Dtype::kF64) {
  std::vector<double> values(factors.size());
  std::iota(values.begin(), values.end(), 1.0);
  const ExpectedOutput expected = {
      FromVector(Dtype::kF64, {std::ssize(factors)}, values),
      std::vector(factors.size(), 1e-15),
      "",
      {},
      {}};
  Tensor got = expected.values;
  got.dtype = dtype;
  for (size_t i = 0; i < factors.size(); ++i) got.values[i] *= factors[i];
  const Case c = ParseCase("op=add fill=generic size=3 scale=1 impl=spoilt");
  return fmt::format(
      "{}", fmt::join(DiagnoseValues(c, TensorMap(), got, expected), "; "));
}

std::vector<double> Three(double factor) { return std::vector(3, factor); }

TEST(Diagnose, NamesARatioThatIsNotOne) {
  EXPECT_EQ(HintsFor(Three(1.001), Dtype::kF64),
            "got/expected is 1.001 for all of them");
  EXPECT_EQ(HintsFor(Three(1.000001), Dtype::kF64), "");
  EXPECT_EQ(HintsFor(Three(1.000001), Dtype::kF32), "");
}

// NaN has no place in an order of ratios.
TEST(Diagnose, NamesNoRatioWhereOneIsNotANumber) {
  EXPECT_EQ(HintsFor({2, std::nan(""), 2, 2, 2}), "");
  EXPECT_EQ(HintsFor({2, 2, 2, 2, 2}), "got/expected is 2 = 2");
}

TEST(Diagnose, ShowsDoublesInFullWhereNineDigitsAreEqual) {
  EXPECT_EQ(HintsFor(Three(1 + 0x1p-40), Dtype::kF64),
            "in full: got 3.0000000000027285, expected 3, bound 1e-15");
  EXPECT_EQ(HintsFor(Three(1 + 0x1p-40), Dtype::kF32), "");
}

}  // namespace
}  // namespace softmoe::verify
