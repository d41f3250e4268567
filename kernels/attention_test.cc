// SPDX-License-Identifier: Apache-2.0
//
// Against naive loops over a number type; see kernel_test_support.h.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include "kernels/testing/kernel_test_support.h"

namespace softmoe::kernels {
namespace {

struct Case {
  int64_t sequences, length, heads, dim;
  float spread = 1.0f;  // of q, k and v
  std::vector<float> qkv, d_out;

  Case(int64_t s, int64_t t, int64_t h, int64_t d, float size = 1.0f)
      : sequences(s), length(t), heads(h), dim(d), spread(size) {
    qkv = RandomFloats(s * t * 3 * h * d, 1);
    for (float& x : qkv) x *= spread;
    d_out = RandomFloats(s * t * h * d, 2);
  }
  int64_t Width() const { return heads * dim; }
  // Part 0, 1, 2 is q, k, v.
  int64_t At(int64_t s, int64_t h, int part, int64_t t, int64_t j) const {
    return ((s * length + t) * 3 + part) * Width() + h * dim + j;
  }
  int64_t Out(int64_t s, int64_t h, int64_t t, int64_t j) const {
    return (s * length + t) * Width() + h * dim + j;
  }
};

// 1/sqrt(head_dim): the kernel's own is rounded once, and so is the root.
double Scale(const Case& c, double) {
  return 1 / std::sqrt(static_cast<double>(c.dim));
}
Dual Scale(const Case& c, Dual) { return Scale(c, 0.0); }
Bounded Scale(const Case& c, Bounded) {
  return Bounded(Scale(c, 0.0)).Rounded(2);
}

template <typename T>
struct Saved {
  std::vector<T> out, log_sum_exp, weights;  // weights: [s, h, t, key]
};

// The running softmax subtracts the largest score, adds the exponentials, and
// rescales its sums at each of its (here at most 3) steps: `steps` more
// products by a factor with an error of 4 u.
Bounded Running(Bounded x, double steps) { return x.Rounded(5 * steps); }
double Running(double x, double) { return x; }
Dual Running(Dual x, double) { return x; }

template <typename T>
Saved<T> Forward(const Case& c, const std::vector<T>& qkv) {
  Saved<T> saved;
  saved.out.resize(c.sequences * c.length * c.Width());
  for (int64_t s = 0; s < c.sequences; ++s) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t t = 0; t < c.length; ++t) {
        std::vector<T> scores;
        T largest(-1e30);
        for (int64_t u = 0; u <= t; ++u) {
          Sum<T> sum;
          for (int64_t j = 0; j < c.dim; ++j) {
            sum.Add(qkv[c.At(s, h, 0, t, j)] * qkv[c.At(s, h, 1, u, j)]);
          }
          scores.push_back(sum.Get() * Scale(c, T()));
          if (Value(scores.back()) > Value(largest)) largest = scores.back();
        }
        Sum<T> total;
        std::vector<T> e;
        for (const T& score : scores) {
          e.push_back(Running(Exp(score - largest), 3));
          total.Add(e.back());
        }
        for (int64_t j = 0; j < c.dim; ++j) {
          Sum<T> sum;
          for (int64_t u = 0; u <= t; ++u) {
            sum.Add(e[u] * qkv[c.At(s, h, 2, u, j)]);
          }
          // The kernel multiplies by the rounded reciprocal.
          saved.out[c.Out(s, h, t, j)] = sum.Get() * (T(1.0) / total.Get());
        }
        saved.log_sum_exp.push_back(largest + Log(total.Get()));
        for (int64_t u = 0; u < c.length; ++u) {
          saved.weights.push_back(
              u <= t ? Exp(scores[u] - saved.log_sum_exp.back()) : T(0.0));
        }
      }
    }
  }
  return saved;
}

template <typename T>
std::vector<T> Backward(const Case& c, const std::vector<T>& qkv,
                        const Saved<T>& saved) {
  std::vector<Sum<T>> sums(qkv.size());
  for (int64_t s = 0; s < c.sequences; ++s) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t t = 0; t < c.length; ++t) {
        const T* weights =
            &saved.weights[((s * c.heads + h) * c.length + t) * c.length];
        Sum<T> delta;
        for (int64_t j = 0; j < c.dim; ++j) {
          delta.Add(saved.out[c.Out(s, h, t, j)] *
                    T(c.d_out[c.Out(s, h, t, j)]));
        }
        for (int64_t u = 0; u <= t; ++u) {
          Sum<T> d_weight;
          for (int64_t j = 0; j < c.dim; ++j) {
            const T d_out(c.d_out[c.Out(s, h, t, j)]);
            d_weight.Add(d_out * qkv[c.At(s, h, 2, u, j)]);
            sums[c.At(s, h, 2, u, j)].Add(weights[u] * d_out);
          }
          const T d_score =
              weights[u] * Scale(c, T()) * (d_weight.Get() - delta.Get());
          for (int64_t j = 0; j < c.dim; ++j) {
            sums[c.At(s, h, 0, t, j)].Add(d_score * qkv[c.At(s, h, 1, u, j)]);
            sums[c.At(s, h, 1, u, j)].Add(d_score * qkv[c.At(s, h, 0, t, j)]);
          }
        }
      }
    }
  }
  std::vector<T> gradient;
  for (const auto& sum : sums) gradient.push_back(sum.Get());
  return gradient;
}

template <typename T>
std::vector<T> As(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

// {out, log_sum_exp, d_qkv}
std::vector<std::vector<float>> RunAttention(const Case& c, ThreadPool& pool) {
  Guarded out(c.d_out.size()), d_qkv(c.qkv.size());
  Guarded log_sum_exp(c.sequences * c.heads * c.length);
  AttentionForward({c.sequences, c.length, c.heads, c.dim, c.qkv.data(),
                    out.data(), log_sum_exp.data()},
                   pool);
  AttentionBackward(
      {c.sequences, c.length, c.heads, c.dim, c.qkv.data(), out.data(),
       log_sum_exp.data(), c.d_out.data(), d_qkv.data()},
      pool);
  return {out.Take(), log_sum_exp.Take(), d_qkv.Take()};
}

// One token; lengths that cross tiles and the key blocks of the backward (256)
// and forward pass (512); head sizes that are and are not whole vectors.
std::vector<Case> Cases() {
  return {Case(2, 1, 2, 8),          Case(3, 5, 1, 3),
          Case(2, 37, 3, 16),        Case(1, 65, 2, 32),
          Case(1, 130, 1, 20, 4.0f), Case(1, 300, 1, 8),
          Case(1, 530, 1, 4, 3.0f)};
}

TEST(Attention, IsWithinTheDerivedBoundsForwardAndBackward) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(std::to_string(c.length) + " x " + std::to_string(c.dim));
    const auto got = SameForAllIsasAndThreads(
        [&](ThreadPool& pool) { return RunAttention(c, pool); });
    const auto qkv = As<Bounded>(c.qkv);
    const auto saved = Forward(c, qkv);
    ExpectWithin(got[0], saved.out, "out");
    ExpectWithin(got[1], saved.log_sum_exp, "log_sum_exp");
    ExpectWithin(got[2], Backward(c, qkv, saved), "d_qkv");
  }
}

// In double: <d_out, J v> = <J^T d_out, v> for a random direction v.
TEST(Attention, ExpectedGradientIsTheAdjointOfTheForwardPass) {
  const Case c(2, 11, 2, 5);
  const auto gradient =
      Backward(c, As<double>(c.qkv), Forward(c, As<double>(c.qkv)));
  const auto bounds =
      Backward(c, As<Bounded>(c.qkv), Forward(c, As<Bounded>(c.qkv)));
  const auto v = RandomFloats(c.qkv.size(), 3);
  std::vector<Dual> moved;
  double from_backward = 0, from_forward = 0, magnitude = 0;
  double error = 0, forward_magnitude = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    moved.push_back({c.qkv[i], v[i]});
    from_backward += gradient[i] * v[i];
    magnitude += std::abs(gradient[i] * v[i]);
    error += std::abs(v[i]) * bounds[i].error;
  }
  const auto out = Forward(c, moved).out;
  for (size_t i = 0; i < out.size(); ++i) {
    from_forward += c.d_out[i] * out[i].slope;
    forward_magnitude += std::abs(c.d_out[i] * out[i].slope);
  }
  EXPECT_NEAR(from_forward, from_backward,
              AdjointBound(error, v.size() * magnitude +
                                      out.size() * forward_magnitude));
  EXPECT_GT(std::abs(from_forward), 1e-3 * magnitude)
      << "the test sees nothing";
}

// Equal scores weigh equally, and integers below 2^24 / n are summed exactly:
// the mean is exact up to the reciprocal and one product, the quotient here up
// to a rounding in double.
TEST(Attention, ZeroQueriesAverageTheValues) {
  ThreadPool pool(4);
  Case c(1, 64, 2, 16);
  c.qkv = SmallIntegers(c.qkv.size(), 5);
  for (int64_t t = 0; t < c.length; ++t) {
    for (int64_t j = 0; j < c.Width(); ++j) c.qkv[t * 3 * c.Width() + j] = 0;
  }
  const auto got = RunAttention(c, pool);
  for (int64_t h = 0; h < c.heads; ++h) {
    for (int64_t j = 0; j < c.dim; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < c.length; ++t) {
        sum += c.qkv[c.At(0, h, 2, t, j)];
        const double mean = sum / static_cast<double>(t + 1);
        const double twice = (1 + kFloatUnit) * (1 + kFloatUnit) - 1;
        EXPECT_NEAR(got[0][c.Out(0, h, t, j)], mean,
                    (twice + 0x1p-53) * std::abs(mean));
      }
    }
  }
}

TEST(Attention, ATokenDoesNotSeeLaterTokensOrOtherSequences) {
  ThreadPool pool(3);
  const Case c(2, 50, 2, 8);
  const auto before = RunAttention(c, pool)[0];
  Case changed = c;
  const int64_t first = 20;  // of sequence 1
  const int64_t from = (c.length + first) * 3 * c.Width();
  for (size_t i = from; i < changed.qkv.size(); ++i) changed.qkv[i] += 1.0f;
  const auto after = RunAttention(changed, pool)[0];
  for (int64_t i = 0; i < (c.length + first) * c.Width(); ++i) {
    ASSERT_EQ(before[i], after[i]);
  }
  EXPECT_NE(before, after);
}

// Scores of several hundred: e^score overflows, the softmax does not.
TEST(Attention, LargeScoresDoNotOverflow) {
  ThreadPool pool(4);
  const Case c(1, 40, 1, 16, 40.0f);
  for (const auto& output : RunAttention(c, pool)) {
    for (const float x : output) ASSERT_TRUE(std::isfinite(x));
  }
}

struct RopeCase {
  Case shape;
  std::vector<float> cosine, sine;

  RopeCase(int64_t s, int64_t t, int64_t h, int64_t d) : shape(s, t, h, d) {
    for (int64_t p = 0; p < t; ++p) {
      for (int64_t i = 0; i < d / 2; ++i) {
        const double angle =
            static_cast<double>(p) *
            std::pow(10000.0, -2.0 * static_cast<double>(i) / d);
        cosine.push_back(static_cast<float>(std::cos(angle)));
        sine.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  std::vector<float> Run(const std::vector<float>& x, bool inverse,
                         ThreadPool& pool) const {
    Guarded qkv(x);
    Rope({shape.sequences, shape.length, shape.heads, shape.dim, cosine.data(),
          sine.data(), qkv.data(), inverse},
         pool);
    return qkv.Take();
  }
};

TEST(Rope, RotatesPairsOfQueriesAndKeysByPosition) {
  for (const RopeCase& c :
       {RopeCase(2, 9, 3, 16), RopeCase(1, 40, 2, 6), RopeCase(3, 33, 1, 64)}) {
    for (const bool inverse : {false, true}) {
      const auto got = SameForAllIsasAndThreads([&](ThreadPool& pool) {
        return std::vector<std::vector<float>>{
            c.Run(c.shape.qkv, inverse, pool)};
      });
      std::vector<Bounded> want(c.shape.qkv.begin(), c.shape.qkv.end());
      const int64_t half = c.shape.dim / 2;
      for (int64_t s = 0; s < c.shape.sequences; ++s) {
        for (int64_t t = 0; t < c.shape.length; ++t) {
          for (int64_t h = 0; h < c.shape.heads; ++h) {
            for (int part = 0; part < 2; ++part) {
              for (int64_t i = 0; i < half; ++i) {
                Bounded& x = want[c.shape.At(s, h, part, t, i)];
                Bounded& y = want[c.shape.At(s, h, part, t, i + half)];
                const Bounded cosine = c.cosine[t * half + i];
                const Bounded sine =
                    inverse ? -c.sine[t * half + i] : c.sine[t * half + i];
                const Bounded rotated = x * cosine - y * sine;
                y = y * cosine + x * sine;
                x = rotated;
              }
            }
          }
        }
      }
      ExpectWithin(got[0], want, "qkv");
    }
  }
}

// Rotation by the negative angle is the transpose: <R x, v> = <x, R^T v>.
TEST(Rope, InverseIsTheAdjoint) {
  ThreadPool pool(4);
  const RopeCase c(2, 17, 2, 8);
  const auto v = RandomFloats(c.shape.qkv.size(), 9);
  const auto forward = c.Run(c.shape.qkv, false, pool);
  const auto backward = c.Run(v, true, pool);
  double left = 0, right = 0, bound = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    left += static_cast<double>(forward[i]) * v[i];
    right += static_cast<double>(backward[i]) * c.shape.qkv[i];
    // Each rotated element, at most sqrt(2) in size, has two roundings.
    bound += 2 * 1.5 * kFloatUnit * (std::abs(v[i]) + std::abs(c.shape.qkv[i]));
  }
  EXPECT_NEAR(left, right, bound);
  EXPECT_GT(std::abs(left), 100 * bound) << "the test sees nothing";
}

}  // namespace
}  // namespace softmoe::kernels
