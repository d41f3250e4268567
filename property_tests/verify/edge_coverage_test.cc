// SPDX-License-Identifier: Apache-2.0
//
// What random cases hardly ever reach, some edge of the operation reaches in
// every case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/tensor.h"
#include "reference/lapsum.h"
#include "reference/matrix.h"

namespace softmoe::verify {
namespace {

using Reaches = std::function<bool(const Case&, const TensorMap& inputs)>;

// Whether all cases of some edge satisfy `reaches`.
bool AnEdgeReaches(const std::string& op_name, const Reaches& reaches) {
  const Operation& op = FindOperation(op_name);
  const uint32_t edges = static_cast<uint32_t>(op.edges().size());
  for (uint32_t edge = 0; edge < edges; ++edge) {
    const CasePattern pattern = ParseWords(op.edges()[edge]);
    bool all = true;
    for (uint32_t number = 0; all && number < 4; ++number) {
      // Sizes as DrawEdge chooses them.
      Case c = DrawCase(op, pattern, 11, number);
      for (auto& [name, window] : c.sizes) {
        if (pattern.contains(name)) continue;
        window.count = std::min<int64_t>(window.count, 20);
      }
      Repair(op, c);
      all = reaches(c, op.Inputs(c));
    }
    if (all) return true;
  }
  return false;
}

double LeastGateArgument(const Case& c, const TensorMap& inputs) {
  const reference::Matrix hidden = ToMatrix(At(inputs, "hidden"));
  const reference::Matrix weights = ToMatrix(At(inputs, "gate_up_weight"));
  const Tensor& active = At(inputs, "active");
  const int64_t experts = c.Size("num_experts");
  const int64_t d_model = c.Size("d_model"), d_ffn = c.Size("d_ffn");
  double least = 0;
  for (int64_t t = 0; t < c.Size("rows"); ++t) {
    for (int64_t e = 0; e < experts; ++e) {
      if (active.values[t * experts + e] == 0) continue;
      for (int64_t f = 0; f < d_ffn; ++f) {
        double z = 0;
        for (int64_t i = 0; i < d_model; ++i) {
          z += hidden(t, i) * weights(e, i * 2 * d_ffn + f);
        }
        least = std::min(least, z);
      }
    }
  }
  return least;
}

// e^-z in SiLU exceeds float at such gates.
TEST(Edges, GatesOfExpertsAreFarBelowZero) {
  EXPECT_TRUE(AnEdgeReaches("experts", [](const Case& c, const TensorMap& in) {
    return LeastGateArgument(c, in) < -89;
  }));
}

double NumRouted(const TensorMap& inputs) {
  double sum = 0;
  for (const double active : At(inputs, "active").values) sum += active;
  return sum;
}

TEST(Edges, ExpertsAndTheirRowsAreMany) {
  const auto experts = [](const Case& c, const TensorMap& in) {
    const Tensor& active = At(in, "active");
    for (int64_t i = 0; i < active.size(); ++i) {
      if (active.values[i] != 0 && i % c.Size("num_experts") > 64) return true;
    }
    return false;
  };
  EXPECT_TRUE(AnEdgeReaches("experts", experts));
  const auto rows_of_one = [](const Case& c, const TensorMap& in) {
    return c.fill.name == "one_expert_all" && NumRouted(in) > 256;
  };
  EXPECT_TRUE(AnEdgeReaches("experts", rows_of_one));
  const auto more_than_16_bits = [](const Case&, const TensorMap& in) {
    return NumRouted(in) > 0x1p16;
  };
  EXPECT_TRUE(AnEdgeReaches("route_plan", more_than_16_bits));
}

TEST(Edges, MeanActiveIsJustBelowTheExperts) {
  for (const char* op : {"lapsum", "router", "balance_sums"}) {
    EXPECT_TRUE(AnEdgeReaches(op, [](const Case& c, const TensorMap& in) {
      const double k = ScalarOf(in, "mean_active");
      const double experts = static_cast<double>(c.Size("num_experts"));
      const bool given = c.Real("mean_active") > experts - 0.0001;
      // Fills may choose another mean_active.
      return given && (c.fill.name != "generic" || k > experts - 0.0001);
    })) << op;
  }
}

// Random draws also come this close now and then.
TEST(Edges, MeanActiveIsDrawnThereNowAndThen) {
  for (const char* name : {"lapsum", "router", "balance_sums"}) {
    const Operation& op = FindOperation(name);
    int near = 0;
    for (uint32_t number = 0; number < 400; ++number) {
      const Case c = DrawCase(op, {{"fill", "generic"}}, 7, number);
      const double left = static_cast<double>(c.Size("num_experts")) -
                          ScalarOf(op.Inputs(c), "mean_active");
      EXPECT_GT(left, 0) << CaseText(c);
      near += left < 0.0001;
    }
    EXPECT_GE(near, 4) << name;
    EXPECT_LE(near, 40) << name;
  }
}

// With exact data, float holds the total.
TEST(Edges, SquaresOfLongArraysHaveATotalThatFloatRounds) {
  const Operation& op = FindOperation("sum_of_squares");
  const auto rounds = [&](const Case& c, const TensorMap& in) {
    const ExpectedOutput total =
        ExpectOf(op, c, in, {}).outputs.at("sum_of_squares");
    const double sum = total.values.values[0];
    return c.Size("size") > 32768 &&
           std::abs(RoundTo(Dtype::kF32, sum) - sum) > 4 * total.bounds[0];
  };
  EXPECT_TRUE(AnEdgeReaches("sum_of_squares", rounds));
}

TEST(Edges, EmptySumsAreAddedAndStored) {
  for (const char* accumulate : {"no", "yes"}) {
    EXPECT_TRUE(AnEdgeReaches("gemm", [&](const Case& c, const TensorMap&) {
      return c.Size("k") == 0 && c.Choice("accumulate") == accumulate;
    })) << accumulate;
  }
}

TEST(Edges, CountsExceed16Bits) {
  EXPECT_TRUE(
      AnEdgeReaches("balance_loss", [](const Case& c, const TensorMap& in) {
        return c.Size("tokens") > 0xffff &&
               std::ranges::any_of(At(in, "counts").values,
                                   [](double count) { return count > 0xffff; });
      }));
  EXPECT_TRUE(AnEdgeReaches("add", [](const Case& c, const TensorMap&) {
    return c.Size("size") > 0xffff;
  }));
}

TEST(Edges, RowsOfBothRoutersAreMany) {
  for (const char* kind : {"soft", "sparse"}) {
    for (const char* many : {"rows", "num_experts"}) {
      EXPECT_TRUE(AnEdgeReaches(
          "router",
          [&](const Case& c, const TensorMap&) {
            return c.Choice("kind") == kind &&
                   c.Size(many) > (many == std::string("rows") ? 1024 : 128);
          }))
          << kind << " " << many;
    }
  }
  for (const char* basis : {"soft_weights", "softmax", "softmax_sparse"}) {
    EXPECT_TRUE(AnEdgeReaches("balance_sums", [&](const Case& c,
                                                  const TensorMap&) {
      return c.Choice("basis") == basis && c.Size("rows") > 1024;
    })) << basis;
  }
}

TEST(Edges, TheFallbackGivesTokensTheirOnlyExpert) {
  EXPECT_TRUE(AnEdgeReaches("router", [](const Case& c, const TensorMap& in) {
    return c.Choice("kind") == "soft" && c.Choice("fallback") == "top1" &&
           c.Size("max_active") == 1 && ScalarOf(in, "cutoff") >= 1;
  }));
}

// More rows than one block of a device sums.
TEST(Edges, AnIdHasManyRows) {
  EXPECT_TRUE(AnEdgeReaches("embedding", [](const Case&, const TensorMap& in) {
    const std::vector<double>& ids = At(in, "ids").values;
    return std::ranges::any_of(
        ids, [&](double id) { return std::ranges::count(ids, id) > 512; });
  }));
}

TEST(Edges, BothFactorsAreTransposed) {
  const auto both = [](const Case& c) {
    return c.Choice("transpose_a") == "yes" && c.Choice("transpose_b") == "yes";
  };
  EXPECT_TRUE(AnEdgeReaches("gemm", [&](const Case& c, const TensorMap&) {
    return both(c) && c.Size("m") == c.Size("n") && c.Size("m") == c.Size("k");
  }));
  EXPECT_TRUE(AnEdgeReaches("gemm", [&](const Case& c, const TensorMap&) {
    return both(c) && c.Size("k") > 512;
  }));
}

TEST(Edges, AVocabularyIsLarge) {
  EXPECT_TRUE(AnEdgeReaches("lm_head", [](const Case& c, const TensorMap&) {
    return c.Size("vocab_size") > 2048 && c.fill.name == "generic";
  }));
}

// 1 - beta2^t is neither nearly 0 nor 1, and t exceeds 16 bits.
TEST(Edges, UpdatesAreMany) {
  EXPECT_TRUE(AnEdgeReaches("adamw", [](const Case& c, const TensorMap& in) {
    const double left =
        std::pow(ScalarOf(in, "beta2"), c.Size("completed") + 1);
    return c.Size("completed") > 1000 && left > 0.01 && left < 0.1 &&
           ScalarOf(in, "learning_rate") > 0;
  }));
  EXPECT_TRUE(AnEdgeReaches("adamw", [](const Case& c, const TensorMap& in) {
    return c.Size("completed") > 0xffff && ScalarOf(in, "beta2") > 0.999 &&
           ScalarOf(in, "learning_rate") > 0;
  }));
}

TEST(Edges, ScoresAreTheRootAndFarFromIt) {
  const auto distance = [](const TensorMap& in, int64_t row) {
    return reference::SolveLapSum(ToMatrix(At(in, "scores")).row(row),
                                  ScalarOf(in, "mean_active"),
                                  ScalarOf(in, "temperature"))
        .min_distance;
  };
  EXPECT_TRUE(AnEdgeReaches("lapsum", [&](const Case& c, const TensorMap& in) {
    return c.Size("rows") == 1 && distance(in, 0) > 15;
  }));
  EXPECT_TRUE(AnEdgeReaches("lapsum", [&](const Case& c, const TensorMap& in) {
    return c.Size("num_experts") == 2 && distance(in, c.Size("rows") - 1) == 0;
  }));
}

// One layer takes nearly all that the layers share, and its gradient is still
// not 0.
TEST(Edges, OneLayerMayHaveTheBudget) {
  const Operation& op = FindOperation("budget");
  const std::string& edge = op.edges().back();
  int saturated = 0;
  for (uint32_t number = 0; number < 40; ++number) {
    const Case c = DrawCase(op, ParseWords(edge), 11, number);
    const TensorMap inputs = op.Inputs(c);
    const std::vector<double>& logits = At(inputs, "budget_logits").values;
    const ExpectedOutput d =
        ExpectOf(op, c, inputs, {}).outputs.at("d_budget_logits");
    ASSERT_EQ(logits.size(), 2u);
    saturated += std::abs(logits[0] - logits[1]) > 14 &&
                 std::abs(d.values.values[0]) > 2 * d.bounds[0];
  }
  EXPECT_GE(saturated, 15);
}

// Four draws share an index (SPEC.md 2.4). It has 64 bits, and the rows of some
// cases have indices on both sides of a multiple of 2^32.
TEST(Edges, IndicesOfDrawsCrossAMultipleOfTwoToThe32) {
  for (const auto& [name, width] : {std::pair("jitter", "d_model"),
                                    std::pair("logit_noise", "num_experts")}) {
    int crossed = 0;
    for (uint32_t number = 0; number < 100; ++number) {
      const Case c = DrawCase(FindOperation(name), {}, 7, number);
      const int64_t first = std::stoll(c.Choice("first_token"));
      const int64_t groups = (c.Size(width) + 3) / 4;
      const int64_t end = (first + c.Size("rows")) * groups;
      crossed +=
          c.Size("rows") > 0 && (first * groups) >> 32 != (end - 1) >> 32;
    }
    EXPECT_GE(crossed, 10) << name;
  }
}

}  // namespace
}  // namespace softmoe::verify
