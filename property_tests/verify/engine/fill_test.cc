// SPDX-License-Identifier: Apache-2.0
//
// Data depends on seed and tensor, and data that must be exact is exact. For
// what the fills of each operation promise, see fill_coverage_test.
#include "property_tests/verify/engine/fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {
namespace {

// The same case with another seed has other data in every tensor that is drawn,
// and no two tensors of a case begin with the same data.
TEST(Fill, DataDependsOnTheSeedAndOnTheTensor) {
  constexpr int64_t kEnough = 8;  // fewer numbers may agree by chance
  for (const Operation* op : Operations()) {
    size_t drawn = 0;
    // Small cases are drawn, too, so go on to the first with enough numbers.
    for (uint32_t number = 0; number < 50 && drawn == 0; ++number) {
      const Case c = DrawCase(*op, {{"fill", "generic"}}, 1, number);
      Case other = c;
      other.seed = 2;
      const TensorMap inputs = op->Inputs(c), others = op->Inputs(other);
      std::set<std::vector<double>> beginnings;
      for (const auto& [name, tensor] : inputs) {
        if (tensor.dtype != Dtype::kF32 || tensor.size() < kEnough) continue;
        ++drawn;
        EXPECT_NE(tensor.values, others.at(name).values)
            << op->name() << " " << name;
        beginnings.emplace(tensor.values.begin(),
                           tensor.values.begin() + kEnough);
      }
      EXPECT_EQ(beginnings.size(), drawn) << op->name();
    }
    EXPECT_GE(drawn, 1u) << op->name();
  }
}

TEST(Fill, TensorsOfAnOperationHaveStreamsOfTheirOwn) {
  for (const Operation* op : Operations()) {
    std::set<uint32_t> keys;
    size_t names = 0;
    const Case c = DrawCase(*op, {}, 0, 0);
    for (const auto& [name, tensor] : op->Inputs(c)) {
      keys.insert(NameKey(name));
      ++names;
    }
    for (const Parameter& p : op->parameters()) {
      keys.insert(NameKey("parameter " + p.name));
      ++names;
    }
    EXPECT_EQ(keys.size(), names) << op->name();
  }
}

// Exact data is computed, not drawn: large whole numbers do not fit into bf16.
TEST(Fill, ExactDataIsExactInItsDtypeAtEveryEdge) {
  for (const Operation* op : Operations()) {
    if (std::ranges::count(op->fills(), "exact") == 0) continue;
    for (const Dtype dtype : op->dtypes()) {
      for (uint32_t number = 0; number < op->edges().size(); ++number) {
        const Case c = DrawEdge(
            *op, {{"dtype", DtypeName(dtype)}, {"fill", "exact"}}, 1, number);
        for (const auto& [name, tensor] : op->Inputs(c)) {
          for (const double x : tensor.values) {
            ASSERT_EQ(RoundTo(tensor.dtype, x), x)
                << name << " " << CaseText(c);
          }
        }
      }
    }
  }
}

TEST(Lattice, ScoresAreZeroOfAPointWithItselfAlone) {
  for (const int64_t points : {1, 2, 12, 140, 256}) {
    const Lattice lattice(points, 1024);
    const double width = static_cast<double>(lattice.width());
    for (int64_t a = 0; a < points; ++a) {
      for (int64_t s = 0; s < points; ++s) {
        double score = 0, magnitude = 0;
        for (int64_t i = 0; i < Lattice::kFactors; ++i) {
          const double product = lattice.Query(a)[i] * lattice.Key(s)[i];
          score += product;
          magnitude += std::abs(product);
        }
        ASSERT_EQ(std::fmod(score, 1024), 0);
        ASSERT_LE(score, a == s ? 0 : -1024);
        ASSERT_GE(score, a == s ? 0 : -1024 * 2 * (width - 1) * (width - 1));
        ASSERT_LE(magnitude, 1024 * 2 * width * width);
      }
    }
  }
}

}  // namespace
}  // namespace softmoe::verify
