// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

constexpr float kEpsilon = 1e-5f;

// 1/sqrt(x): the root's relative error is half of x's, and two roundings.
Bounded ReciprocalRoot(Bounded x) {
  const double value = 1 / std::sqrt(x.value);
  return Bounded(value, value * x.error / (2 * (x.value - x.error))).Rounded(2);
}
Dual ReciprocalRoot(Dual x) {
  const double value = 1 / std::sqrt(x.value);
  return {value, -0.5 * value / x.value * x.slope};
}

struct Data {
  int64_t tokens, d_model;
  float epsilon = kEpsilon;
  std::vector<float> x, weight, d_y, d_x;

  template <typename Make>
  Data(int64_t t, int64_t d, Make make) : tokens(t), d_model(d) {
    x = make(t * d, 1);
    weight = make(d, 2);
    d_y = make(t * d, 3);
    d_x = make(t * d, 4);
  }

  // y and rstd.
  std::vector<std::vector<float>> Forward(ThreadPool& pool) const {
    Guarded y(tokens * d_model), rstd(tokens);
    RmsNormForward({tokens, d_model, epsilon, x.data(), weight.data(), y.data(),
                    rstd.data()},
                   pool);
    return {y.Take(), rstd.Take()};
  }
  // d_x and d_weight.
  std::vector<std::vector<float>> Backward(
      ThreadPool& pool, const std::vector<float>& rstd) const {
    Guarded out(d_x), d_weight(d_model),
        scratch(RmsNormScratch(tokens, d_model));
    RmsNormBackward({tokens, d_model, x.data(), weight.data(), rstd.data(),
                     d_y.data(), out.data(), d_weight.data(), scratch.data()},
                    pool);
    scratch.Take();
    return {out.Take(), d_weight.Take()};
  }
};

const int64_t kShapes[][2] = {{1, 1},    {3, 7},    {5, 8},
                              {2, 16},   {7, 65},   {130, 64},
                              {64, 100}, {65, 128}, {19, 640}};

// The formula over numbers that carry their bound, or their derivative.
template <typename T>
std::vector<T> NormOfRow(const std::vector<T>& x, const std::vector<T>& weight,
                         double epsilon, T* rstd) {
  Sum<T> squares;
  for (const T& value : x) squares.Add(value * value);
  *rstd = ReciprocalRoot(squares.Get() / T(static_cast<double>(x.size())) +
                         T(epsilon));
  std::vector<T> y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * *rstd * weight[i]);
  return y;
}

TEST(RmsNorm, ForwardIsWithinTheDerivedBound) {
  for (const auto& shape : kShapes) {
    const Data d(shape[0], shape[1], RandomFloats);
    const auto got = SameForAllIsasAndThreads(
        [&](ThreadPool& pool) { return d.Forward(pool); });
    std::vector<Bounded> y, rstd(d.tokens);
    const std::vector<Bounded> weight(d.weight.begin(), d.weight.end());
    for (int64_t t = 0; t < d.tokens; ++t) {
      const std::vector<Bounded> x(d.x.begin() + t * d.d_model,
                                   d.x.begin() + (t + 1) * d.d_model);
      for (Bounded b : NormOfRow(x, weight, kEpsilon, &rstd[t])) y.push_back(b);
    }
    ExpectWithin(got[0], y, "y");
    ExpectWithin(got[1], rstd, "rstd");
  }
}

struct BoundedGradients {
  std::vector<Bounded> d_x, d_weight;
};

BoundedGradients ExpectedBackward(const Data& d,
                                  const std::vector<Bounded>& rstd) {
  BoundedGradients result;
  std::vector<Sum<Bounded>> d_weight(d.d_model);
  for (int64_t t = 0; t < d.tokens; ++t) {
    const Bounded r = rstd[t];
    Sum<Bounded> dot;
    for (int64_t i = 0; i < d.d_model; ++i) {
      const int64_t at = t * d.d_model + i;
      dot.Add(Bounded(d.d_y[at]) * d.weight[i] * d.x[at]);
      d_weight[i].Add(Bounded(d.d_y[at]) * d.x[at] * r);
    }
    const Bounded projection =
        dot.Get() * r * r / static_cast<double>(d.d_model);
    for (int64_t i = 0; i < d.d_model; ++i) {
      const int64_t at = t * d.d_model + i;
      result.d_x.push_back(
          Bounded(d.d_x[at]) +
          (Bounded(d.d_y[at]) * d.weight[i] - Bounded(d.x[at]) * projection) *
              r);
    }
  }
  for (const auto& sum : d_weight) result.d_weight.push_back(sum.Get());
  return result;
}

TEST(RmsNorm, BackwardIsWithinTheDerivedBound) {
  for (const auto& shape : kShapes) {
    const Data d(shape[0], shape[1], RandomFloats);
    ThreadPool one(1);
    const auto rstd = d.Forward(one)[1];
    const auto got = SameForAllIsasAndThreads(
        [&](ThreadPool& pool) { return d.Backward(pool, rstd); });
    const auto want = ExpectedBackward(d, {rstd.begin(), rstd.end()});
    ExpectWithin(got[0], want.d_x, "d_x");
    ExpectWithin(got[1], want.d_weight, "d_weight");
  }
}

// |x| = 1 and epsilon = 0: rstd is 1, and with integers all sums are exact in
// any order.
TEST(RmsNorm, ExactDataIsExact) {
  Data d(70, 96, SmallIntegers);
  d.epsilon = 0;
  for (float& value : d.x) value = value < 0 ? -1.0f : 1.0f;
  ThreadPool pool(3);
  const auto forward = d.Forward(pool);
  for (size_t i = 0; i < d.x.size(); ++i) {
    EXPECT_EQ(forward[0][i], d.x[i] * d.weight[i % 96]);
  }
  const auto backward = d.Backward(pool, forward[1]);
  for (int64_t i = 0; i < 96; ++i) {
    float sum = 0;
    for (int64_t t = 0; t < 70; ++t) sum += d.x[t * 96 + i] * d.d_y[t * 96 + i];
    EXPECT_EQ(backward[1][i], sum);
  }
}

// <d_y, J (dx, dw)> from dual numbers = <(d_x, d_w), (dx, dw)> from the kernel,
// whose elements are within the bounds of the tests above, that of rstd
// included. Rounding in double adds 2^-29 of that on either side, and for the
// sums.
TEST(RmsNorm, BackwardIsTheAdjointOfTheTangent) {
  Data d(23, 200, RandomFloats);
  for (float& value : d.d_x) value = 0;
  ThreadPool pool(1);
  const auto rstd = d.Forward(pool)[1];
  const auto got = d.Backward(pool, rstd);
  const auto dx = RandomFloats(d.tokens * d.d_model, 50);
  const auto dw = RandomFloats(d.d_model, 51);
  std::vector<Dual> weight;
  for (int64_t i = 0; i < d.d_model; ++i) {
    weight.push_back({d.weight[i], dw[i]});
  }
  double left = 0, right = 0, error = 0, rounding = 0;
  std::vector<Bounded> bounded_rstd(d.tokens);
  for (int64_t t = 0; t < d.tokens; ++t) {
    std::vector<Dual> x;
    std::vector<Bounded> bounded_x;
    for (int64_t i = 0; i < d.d_model; ++i) {
      const int64_t at = t * d.d_model + i;
      x.push_back({d.x[at], dx[at]});
      bounded_x.push_back(d.x[at]);
      right += double{got[0][at]} * dx[at];
      rounding += std::abs(double{got[0][at]} * dx[at]);
    }
    NormOfRow(bounded_x, {d.weight.begin(), d.weight.end()}, kEpsilon,
              &bounded_rstd[t]);
    Dual ignored;
    const auto y = NormOfRow(x, weight, kEpsilon, &ignored);
    for (int64_t i = 0; i < d.d_model; ++i) {
      left += y[i].slope * d.d_y[t * d.d_model + i];
      rounding += std::abs(y[i].slope * d.d_y[t * d.d_model + i]);
    }
  }
  for (int64_t i = 0; i < d.d_model; ++i) {
    right += double{got[1][i]} * dw[i];
    rounding += std::abs(double{got[1][i]} * dw[i]);
  }
  const auto bounds = ExpectedBackward(d, bounded_rstd);
  for (size_t i = 0; i < dx.size(); ++i) {
    error += std::abs(dx[i]) * bounds.d_x[i].error;
  }
  for (size_t i = 0; i < dw.size(); ++i) {
    error += std::abs(dw[i]) * bounds.d_weight[i].error;
  }
  const double terms = dx.size() + dw.size();
  const double bound = error + AdjointBound(error, terms * rounding);
  EXPECT_NEAR(left, right, bound);
  EXPECT_GT(std::abs(left), bound) << "the test sees nothing";
}

}  // namespace
}  // namespace softmoe::kernels
