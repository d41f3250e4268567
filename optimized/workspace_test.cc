// SPDX-License-Identifier: Apache-2.0
//
// The tables of rotations hold the angles of SPEC.md 3.2 at every position of
// sequences twice as long as those of the paper.
#include "optimized/workspace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/parallel_for.h"
#include "core/testing/config_test_util.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
namespace {

// A table is computed in double and rounded once. The angle in double errs by
// far less: 4096 (4 + 4 ln base) 2^-53.
constexpr double kTolerance = 0x1p-25 + 1e-10;

TEST(Workspace, RotationsAreThoseOfEveryPosition) {
  for (const double base : {1e4, 5e5}) {
    Config config = SmallConfig(RouterKind::kSoftLearned);
    config.model.num_heads = 1;
    config.model.d_model = 64;
    config.model.sequence_length = 4096;
    config.model.rope_base = base;
    ThreadPool pool(1);
    const Workspace workspace(config, config.model.sequence_length,
                              Recompute::kNone, pool);
    const int64_t dim = config.model.head_dim(), pairs = dim / 2;
    for (int64_t i = 0; i < pairs; ++i) {
      const long double exponent =
          -2 * static_cast<long double>(i) / static_cast<long double>(dim);
      const long double frequency =
          std::pow(static_cast<long double>(base), exponent);
      for (int64_t t = 0; t < config.model.sequence_length; ++t) {
        const long double angle = static_cast<long double>(t) * frequency;
        const int64_t at = t * pairs + i;
        ASSERT_NEAR(workspace.cosine.data()[at],
                    static_cast<double>(std::cos(angle)), kTolerance)
            << "pair " << i << " at position " << t;
        ASSERT_NEAR(workspace.sine.data()[at],
                    static_cast<double>(std::sin(angle)), kTolerance)
            << "pair " << i << " at position " << t;
      }
    }
  }
}

}  // namespace
}  // namespace softmoe::optimized
