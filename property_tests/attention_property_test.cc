// SPDX-License-Identifier: Apache-2.0
//
// RoPE and causal attention: kernels against the reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "property_tests/error_bounds.h"
#include "property_tests/kernel_case.h"
#include "reference/attention.h"
#include "reference/rope.h"

namespace softmoe::property_tests {
namespace {

struct AttentionCase {
  int64_t sequences = *rc::gen::inRange<int64_t>(1, 4);
  int64_t length = *rc::gen::inRange<int64_t>(1, 80);
  int64_t heads = *rc::gen::inRange<int64_t>(1, 4);
  int64_t dim = 2 * *rc::gen::inRange<int64_t>(1, 20);
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  double size = *rc::gen::element(0.1, 1.0, 4.0);
  Floats qkv =
      NormalFloats(sequences * length * 3 * heads * dim, seed, 1, size);
  Floats d_out = NormalFloats(sequences * length * heads * dim, seed, 2);

  int64_t rows() const { return sequences * length; }
  int64_t width() const { return heads * dim; }
  // Part 0, 1, 2 is q, k, v; token `t` of sequence `s`.
  int64_t At(int64_t s, int64_t h, int part, int64_t t, int64_t j) const {
    return ((s * length + t) * 3 + part) * width() + h * dim + j;
  }
  int64_t Out(int64_t s, int64_t h, int64_t t, int64_t j) const {
    return (s * length + t) * width() + h * dim + j;
  }
};

RC_GTEST_PROP(RopeDifference, RotatesForthAndBackWithinItsBounds, ()) {
  const AttentionCase c;
  const int64_t pairs = c.dim / 2;
  constexpr double kBase = 10000.0;
  Floats cosine, sine;
  for (int64_t t = 0; t < c.length; ++t) {
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle = reference::RopeAngle(t, i, c.dim, kBase);
      cosine.push_back(static_cast<float>(std::cos(angle)));
      sine.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  const reference::Matrix qkv = AsMatrix(c.qkv, c.rows(), 3 * c.width());
  for (const bool inverse : {false, true}) {
    const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
      Floats rotated = c.qkv;
      kernels::Rope({c.sequences, c.length, c.heads, c.dim, cosine.data(),
                     sine.data(), rotated.data(), inverse},
                    pool);
      return std::vector<Floats>{rotated};
    });
    // The tables are rounded once.
    std::vector<Bounded> bounds(c.qkv.begin(), c.qkv.end());
    for (int64_t s = 0; s < c.sequences; ++s) {
      for (int64_t h = 0; h < c.heads; ++h) {
        for (int part = 0; part < 2; ++part) {
          for (int64_t t = 0; t < c.length; ++t) {
            for (int64_t i = 0; i < pairs; ++i) {
              const double angle = reference::RopeAngle(t, i, c.dim, kBase);
              const Bounded co = Bounded(std::cos(angle)).Rounded();
              const Bounded si =
                  Bounded(inverse ? -std::sin(angle) : std::sin(angle))
                      .Rounded();
              const int64_t low = c.At(s, h, part, t, i);
              const int64_t high = c.At(s, h, part, t, i + pairs);
              const Bounded a(c.qkv[low]), b(c.qkv[high]);
              bounds[low] = a * co - b * si;
              bounds[high] = a * si + b * co;
            }
          }
        }
      }
    }
    const reference::Matrix expected =
        inverse ? reference::RopeBackward(qkv, c.sequences, c.heads, kBase)
                : reference::RopeForward(qkv, c.sequences, c.heads, kBase);
    for (const auto& got : levels) {
      RC_ASSERT(Mismatch("rotated", got[0], expected, bounds) == "");
    }
  }
}

// The bounds of one head of one sequence, forward and backward.
struct HeadBounds {
  std::vector<Bounded>& out;
  std::vector<BoundedSum>& d_qkv;

  void Compute(const AttentionCase& c, int64_t s, int64_t h) {
    // The root and the quotient are rounded once each.
    const Bounded scale =
        Bounded(1 / std::sqrt(static_cast<double>(c.dim))).Rounded(2);
    for (int64_t t = 0; t < c.length; ++t) {
      std::vector<Bounded> scores;
      for (int64_t key = 0; key <= t; ++key) {
        BoundedSum dot;
        for (int64_t j = 0; j < c.dim; ++j) {
          dot.Add(Bounded(c.qkv[c.At(s, h, 0, t, j)]) *
                  Bounded(c.qkv[c.At(s, h, 1, key, j)]));
        }
        scores.push_back(dot.Get() * scale);
      }
      // Key blocks have at least 16 rows, so there are at most 5 steps here.
      const BoundedSoftmax softmax = SoftmaxOf(scores, 5);
      const Bounded reciprocal = Bounded(1) / softmax.sum;
      BoundedSum delta;
      for (int64_t j = 0; j < c.dim; ++j) {
        BoundedSum sum;
        for (int64_t key = 0; key <= t; ++key) {
          sum.Add(softmax.exponentials[key] *
                  Bounded(c.qkv[c.At(s, h, 2, key, j)]));
        }
        Bounded& element = out[c.Out(s, h, t, j)];
        element = sum.Get() * reciprocal;
        delta.Add(element * Bounded(c.d_out[c.Out(s, h, t, j)]));
      }
      Backward(c, s, h, t, scores, softmax.log_sum_exp, delta.Get(), scale);
    }
  }

  // What query t adds to the gradients of q, k and v.
  void Backward(const AttentionCase& c, int64_t s, int64_t h, int64_t t,
                const std::vector<Bounded>& scores, Bounded log_sum_exp,
                Bounded delta, Bounded scale) {
    for (int64_t key = 0; key <= t; ++key) {
      const Bounded weight = Exp(scores[key] - log_sum_exp);
      BoundedSum d_weight;
      for (int64_t j = 0; j < c.dim; ++j) {
        const Bounded d(c.d_out[c.Out(s, h, t, j)]);
        d_weight.Add(d * Bounded(c.qkv[c.At(s, h, 2, key, j)]));
        d_qkv[c.At(s, h, 2, key, j)].Add(weight * d);
      }
      const Bounded d_score = weight * scale * (d_weight.Get() - delta);
      for (int64_t j = 0; j < c.dim; ++j) {
        const int64_t q = c.At(s, h, 0, t, j), k = c.At(s, h, 1, key, j);
        d_qkv[q].Add(d_score * Bounded(c.qkv[k]));
        d_qkv[k].Add(d_score * Bounded(c.qkv[q]));
      }
    }
  }
};

RC_GTEST_PROP(AttentionDifference, ForwardAndBackwardAreWithinTheirBounds, ()) {
  const AttentionCase c;
  const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    Floats out(c.d_out.size()), d_qkv(c.qkv.size());
    Floats log_sum_exp(c.rows() * c.heads);
    kernels::AttentionForward({c.sequences, c.length, c.heads, c.dim,
                               c.qkv.data(), out.data(), log_sum_exp.data()},
                              pool);
    kernels::AttentionBackward(
        {c.sequences, c.length, c.heads, c.dim, c.qkv.data(), out.data(),
         log_sum_exp.data(), c.d_out.data(), d_qkv.data()},
        pool);
    return std::vector<Floats>{out, d_qkv};
  });
  std::vector<Bounded> out(c.d_out.size());
  std::vector<BoundedSum> sums(c.qkv.size());
  for (int64_t s = 0; s < c.sequences; ++s) {
    for (int64_t h = 0; h < c.heads; ++h) {
      HeadBounds{out, sums}.Compute(c, s, h);
    }
  }
  std::vector<Bounded> d_qkv;
  for (const BoundedSum& sum : sums) d_qkv.push_back(sum.Get());
  const reference::Matrix qkv = AsMatrix(c.qkv, c.rows(), 3 * c.width());
  for (const auto& got : levels) {
    RC_ASSERT(Mismatch("out", got[0],
                       reference::MultiHeadAttention(qkv, c.sequences, c.heads),
                       out) == "");
    RC_ASSERT(Mismatch("d_qkv", got[1],
                       reference::MultiHeadAttentionBackward(
                           qkv, c.sequences, c.heads,
                           AsMatrix(c.d_out, c.rows(), c.width())),
                       d_qkv) == "");
  }
}

}  // namespace
}  // namespace softmoe::property_tests
