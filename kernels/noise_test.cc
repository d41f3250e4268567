// SPDX-License-Identifier: Apache-2.0
#include "kernels/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace softmoe::kernels {
namespace {

constexpr RandomKey kKey{7, RandomStream::kRouterNoise, 3, 2};

std::vector<float> TestData(int64_t size, uint32_t step) {
  const RandomKey key{99, RandomStream::kTestData, step, 0};
  std::vector<float> x(size);
  for (int64_t i = 0; i < size; ++i) {
    x[i] = static_cast<float>(
        4.0 * UniformFromWord(PhiloxWords(key, i / 4)[i % 4]) - 2.0);
  }
  return x;
}

// The factor as the definition addresses it.
double Factor(int64_t token, int64_t d_model, int64_t j, double amplitude) {
  const auto words = PhiloxWords(kKey, token * ((d_model + 3) / 4) + j / 4);
  return 1.0 - amplitude + 2.0 * amplitude * UniformFromWord(words[j % 4]);
}

TEST(InputJitter, MultipliesByTheAddressedFactorRoundedOnce) {
  ThreadPool pool(3);
  for (int64_t d_model : {1, 3, 4, 7, 64}) {
    const int64_t tokens = 37, first = 1000;
    const auto x = TestData(tokens * d_model, 1);
    std::vector<float> y(x.size() + 1, -5.0f);
    InputJitter({tokens, d_model, first, kKey, 0.05, x.data(), y.data()}, pool);
    for (int64_t i = 0; i < tokens * d_model; ++i) {
      const double f = Factor(first + i / d_model, d_model, i % d_model, 0.05);
      EXPECT_EQ(y[i], static_cast<float>(f * x[i]));
      EXPECT_GE(f, 0.95);
      EXPECT_LT(f, 1.05);
    }
    EXPECT_EQ(y.back(), -5.0f);
  }
}

// <J x, v> = <x, J^T v>: the map is diagonal, so both sides are sums of the
// same n products; each product is rounded twice on the way (u = 2^-24).
TEST(InputJitter, AccumulatingIsTheAdjoint) {
  ThreadPool pool(2);
  const int64_t tokens = 21, d_model = 30;
  const auto x = TestData(tokens * d_model, 1);
  const auto v = TestData(tokens * d_model, 2);
  std::vector<float> y(x.size()), d_x(x.size(), 1.0f);
  InputJitter({tokens, d_model, 5, kKey, 0.3, x.data(), y.data()}, pool);
  InputJitter({tokens, d_model, 5, kKey, 0.3, v.data(), d_x.data(), true},
              pool);
  double left = 0, right = 0, bound = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    left += static_cast<double>(y[i]) * v[i];
    right += static_cast<double>(x[i]) * (d_x[i] - 1.0);
    bound +=
        0x1p-24 * (std::abs(y[i] * v[i]) + std::abs(x[i]) * std::abs(d_x[i]));
  }
  EXPECT_NEAR(left, right, bound);
  EXPECT_GT(std::abs(left), 100 * bound) << "the test sees nothing";
}

TEST(InputJitter, SplittingTheTokensChangesNothing) {
  ThreadPool one(1), four(4);
  const int64_t tokens = 50, d_model = 10;
  const auto x = TestData(tokens * d_model, 1);
  std::vector<float> whole(x.size()), parts(x.size());
  InputJitter({tokens, d_model, 0, kKey, 0.1, x.data(), whole.data()}, four);
  for (int64_t begin : {0, 20}) {
    const int64_t count = begin == 0 ? 20 : 30;
    InputJitter({count, d_model, begin, kKey, 0.1, x.data() + begin * d_model,
                 parts.data() + begin * d_model},
                one);
  }
  EXPECT_EQ(whole, parts);
}

TEST(LogitNoise, AddsTheAddressedNormals) {
  ThreadPool pool(4);
  for (int64_t num_experts : {1, 5, 8}) {
    const int64_t tokens = 19, first = 11;
    const auto before = TestData(tokens * num_experts, 4);
    auto scores = before;
    LogitNoise({tokens, num_experts, first, kKey, 0.5, scores.data()}, pool);
    for (int64_t i = 0; i < tokens * num_experts; ++i) {
      const int64_t token = first + i / num_experts, e = i % num_experts;
      const auto w = PhiloxWords(kKey, token * ((num_experts + 3) / 4) + e / 4);
      const auto pair =
          NormalsFromWords(w[e % 4 / 2 * 2], w[e % 4 / 2 * 2 + 1]);
      EXPECT_EQ(scores[i], static_cast<float>(before[i] + 0.5 * pair[e % 2]));
      EXPECT_NE(scores[i], before[i]);
    }
  }
}

}  // namespace
}  // namespace softmoe::kernels
