// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

Bounded Sqrt(Bounded x) {
  const double value = std::sqrt(x.value);
  // A root has half the relative error of x, however small x is.
  return x.value == 0
             ? Bounded(0, std::sqrt(x.error))
             : Bounded(value, value * x.error / (2 * x.value)).Rounded();
}

// Sizes around the vector widths and the blocks of tasks.
const int64_t kSizes[] = {0,  1,   5,    8,    15,    16,
                          17, 100, 4095, 4097, 16384, 40001};

TEST(AdamW, UpdateIsWithinTheDerivedBound) {
  for (int64_t size : kSizes) {
    const auto gradient = RandomFloats(size, 1);
    const auto parameter = RandomFloats(size, 2);
    const auto first = RandomFloats(size, 3);
    auto second = RandomFloats(size, 4);
    for (float& v : second) v *= v;
    AdamWArgs args = {};
    args.size = size;
    args.learning_rate = 3e-3f;
    args.beta1 = 0.9f;
    args.beta2 = 0.95f;
    args.epsilon = 1e-8f;
    args.weight_decay = 0.1f;
    args.bias1 = 1 / (1 - 0.9f * 0.9f * 0.9f);
    args.bias2 = 1 / (1 - 0.95f * 0.95f * 0.95f);
    args.gradient_scale = 0.37f;
    args.gradient = gradient.data();
    const auto got = SameForAllIsasAndThreads([&](ThreadPool& pool) {
      Guarded p(parameter), m(first), v(second);
      args.parameter = p.data();
      args.first_moment = m.data();
      args.second_moment = v.data();
      AdamW(args, pool);
      return std::vector<std::vector<float>>{p.Take(), m.Take(), v.Take()};
    });
    std::vector<Bounded> p, m, v;
    for (int64_t i = 0; i < size; ++i) {
      const Bounded g = Bounded(args.gradient_scale) * gradient[i];
      m.push_back(Bounded(args.beta1) * first[i] +
                  (Bounded(1) - args.beta1) * g);
      v.push_back(Bounded(args.beta2) * second[i] +
                  (Bounded(1) - args.beta2) * g * g);
      const Bounded step =
          m[i] * args.bias1 / (Sqrt(v[i] * args.bias2) + args.epsilon);
      p.push_back(Bounded(parameter[i]) -
                  Bounded(args.learning_rate) *
                      (Bounded(args.weight_decay) * parameter[i] + step));
    }
    ExpectWithin(got[0], p, "parameter");
    ExpectWithin(got[1], m, "first moment");
    ExpectWithin(got[2], v, "second moment");
  }
}

// Powers of two: every operation is exact, and so is the result.
TEST(AdamW, ExactDataIsExact) {
  const float gradient[2] = {4, -4};
  float parameter[2] = {1, 1}, first[2] = {0, 0}, second[2] = {0, 0};
  AdamWArgs args = {};
  args.size = 2;
  args.learning_rate = 0.25f;
  args.beta1 = args.beta2 = 0.5f;
  args.weight_decay = 0.5f;
  args.bias1 = args.bias2 = 2;
  args.gradient_scale = 0.5f;
  args.gradient = gradient;
  args.parameter = parameter;
  args.first_moment = first;
  args.second_moment = second;
  ThreadPool pool(1);
  AdamW(args, pool);
  // g = +-2, m = +-1, v = 2, step = +-2/2, decay 1/2.
  EXPECT_EQ(parameter[0], 1 - 0.25f * 1.5f);
  EXPECT_EQ(parameter[1], 1 - 0.25f * -0.5f);
  EXPECT_EQ(first[1], -1);
  EXPECT_EQ(second[1], 2);
}

// A parameter that never saw a gradient only decays; it does not become NaN.
TEST(AdamW, NoGradientMeansDecayOnly) {
  const float gradient = 0;
  float parameter = 3, first = 0, second = 0;
  AdamWArgs args = {1,   0.1f, 0.9f,      0.99f,      1e-8f,  0.5f,   10,
                    100, 1,    &gradient, &parameter, &first, &second};
  ThreadPool pool(1);
  AdamW(args, pool);
  // The rate, two products and a difference, of numbers up to 3.
  EXPECT_NEAR(parameter, 3 * (1 - 0.1 * 0.5), 4 * kFloatUnit * 3);
}

// Squares of floats are exact in double; a sum of n terms in 16 chains per
// block and one over blocks is within n 2^-53 of itself (all terms positive).
TEST(SumOfSquares, IsTheSumAtDoublePrecision) {
  for (int64_t size : kSizes) {
    const auto x = RandomFloats(size, 7);
    double results[6] = {};
    int count = 0;
    for (Isa isa : {Isa::kV3, Isa::kV4}) {
      if (!IsaAvailable(isa)) continue;
      SelectIsa(IsaName(isa));
      for (int threads : {1, 3, 4}) {
        ThreadPool pool(threads);
        std::vector<double> scratch(SumOfSquaresScratch(size) + 1, -7);
        SumOfSquares({size, x.data(), &results[count], scratch.data()}, pool);
        EXPECT_EQ(scratch.back(), -7);
        ++count;
      }
    }
    SelectIsa("");
    for (int i = 1; i < count; ++i) EXPECT_EQ(results[i], results[0]);
    long double sum = 0;
    for (float value : x) sum += static_cast<double>(value) * value;
    EXPECT_NEAR(results[0], static_cast<double>(sum),
                size * 0x1p-53 * static_cast<double>(sum));
  }
}

TEST(SumOfSquares, IntegersAreExactAndLargeValuesDoNotOverflow) {
  const auto x = SmallIntegers(10000, 8);
  double expected = 0;
  for (float value : x) expected += static_cast<double>(value) * value;
  std::vector<double> scratch(SumOfSquaresScratch(10000));
  double result;
  ThreadPool pool(2);
  SumOfSquares({10000, x.data(), &result, scratch.data()}, pool);
  EXPECT_EQ(result, expected);
  const std::vector<float> large(3, 0x1p120f);
  SumOfSquares({3, large.data(), &result, scratch.data()}, pool);
  EXPECT_EQ(result, 3 * 0x1p240);
}

TEST(Add, AddsEveryElementOnce) {
  for (int64_t size : kSizes) {
    const auto x = RandomFloats(size, 9), y = RandomFloats(size, 10);
    const auto got = SameForAllIsasAndThreads([&](ThreadPool& pool) {
      Guarded sum(y);
      Add({size, x.data(), sum.data()}, pool);
      return std::vector<std::vector<float>>{sum.Take()};
    });
    for (int64_t i = 0; i < size; ++i) EXPECT_EQ(got[0][i], x[i] + y[i]);
  }
}

}  // namespace
}  // namespace softmoe::kernels
