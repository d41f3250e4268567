// SPDX-License-Identifier: Apache-2.0
//
// RoPE: the kernel against the reference, and the CUDA kernel, on a simulated
// device, against the kernel.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/attention.h"
#include "kernels/cuda/layer_kernels.h"
#include "property_tests/error_bounds.h"
#include "property_tests/testing/simulated_case.h"
#include "reference/rope.h"
#include "reference/rope_formula.h"

namespace softmoe::property_tests {
namespace {

constexpr double kBase = 10000.0;

struct RopeCase {
  int64_t sequences = *rc::gen::inRange<int64_t>(1, 4);
  int64_t length = *rc::gen::inRange<int64_t>(1, 80);
  int64_t heads = *rc::gen::inRange<int64_t>(1, 4);
  int64_t dim = 2 * *rc::gen::inRange<int64_t>(1, 20);
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  double size = *rc::gen::element(0.1, 1.0, 4.0);
  Floats qkv =
      NormalFloats(sequences * length * 3 * heads * dim, seed, 1, size);

  Floats cosine, sine;

  RopeCase() {
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t i = 0; i < dim / 2; ++i) {
        const double angle = reference::RopeAngle(t, i, dim, kBase);
        cosine.push_back(static_cast<float>(std::cos(angle)));
        sine.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  int64_t rows() const { return sequences * length; }
  int64_t width() const { return heads * dim; }
};

RC_GTEST_PROP(RopeDifference, RotatesForthAndBackWithinItsBounds, ()) {
  const RopeCase c;
  const reference::Matrix qkv = AsMatrix(c.qkv, c.rows(), 3 * c.width());
  for (const bool inverse : {false, true}) {
    const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
      Floats rotated = c.qkv;
      kernels::Rope({c.sequences, c.length, c.heads, c.dim, c.cosine.data(),
                     c.sine.data(), rotated.data(), inverse},
                    pool);
      return std::vector<Floats>{rotated};
    });
    // The tables are rounded once: as if q and k were.
    const reference::MatrixOf<Bounded> inexact =
        qkv.unaryExpr([](double x) { return Bounded(x).Rounded(); });
    const reference::MatrixOf<Bounded> rotated =
        reference::formula::RotateQueriesAndKeys<Bounded>(
            inexact, c.sequences, c.heads, kBase, inverse ? -1 : 1);
    const std::vector<Bounded> bounds(rotated.data(),
                                      rotated.data() + rotated.size());
    const reference::Matrix expected =
        inverse ? reference::RopeBackward(qkv, c.sequences, c.heads, kBase)
                : reference::RopeForward(qkv, c.sequences, c.heads, kBase);
    for (const auto& got : levels) {
      RC_ASSERT(Mismatch("rotated", got[0], expected, bounds) == "");
    }
  }
}

// So the bounds above hold for it too.
RC_GTEST_PROP(RopeDifference, CudaKernelGivesTheBitsOfTheCpu, ()) {
  const RopeCase c;
  const bool inverse = *rc::gen::arbitrary<bool>();
  ExpectTheBitsOfTheCpu(
      kernels::Rope, kernels::isa_shim::Rope,
      [&](auto& arrays, const auto& rotate) {
        Floats rotated = c.qkv;
        rotate({c.sequences, c.length, c.heads, c.dim, arrays.In(c.cosine),
                arrays.In(c.sine), arrays.InOut(rotated), inverse});
        return std::vector<Floats>{rotated};
      });
}

}  // namespace
}  // namespace softmoe::property_tests
