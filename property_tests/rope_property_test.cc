// SPDX-License-Identifier: Apache-2.0
//
// RoPE: the kernel against the reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "property_tests/error_bounds.h"
#include "property_tests/kernel_case.h"
#include "reference/rope.h"

namespace softmoe::property_tests {
namespace {

struct RopeCase {
  int64_t sequences = *rc::gen::inRange<int64_t>(1, 4);
  int64_t length = *rc::gen::inRange<int64_t>(1, 80);
  int64_t heads = *rc::gen::inRange<int64_t>(1, 4);
  int64_t dim = 2 * *rc::gen::inRange<int64_t>(1, 20);
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  double size = *rc::gen::element(0.1, 1.0, 4.0);
  Floats qkv =
      NormalFloats(sequences * length * 3 * heads * dim, seed, 1, size);

  int64_t rows() const { return sequences * length; }
  int64_t width() const { return heads * dim; }
  // Part 0, 1, 2 is q, k, v; token `t` of sequence `s`.
  int64_t At(int64_t s, int64_t h, int part, int64_t t, int64_t j) const {
    return ((s * length + t) * 3 + part) * width() + h * dim + j;
  }
};

RC_GTEST_PROP(RopeDifference, RotatesForthAndBackWithinItsBounds, ()) {
  const RopeCase c;
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

}  // namespace
}  // namespace softmoe::property_tests
