// SPDX-License-Identifier: Apache-2.0
//
// The bounds at each dtype tell right from wrong: at f64 a correct program may
// compute differently from the reference; at bf16 an operation may round only
// what that dtype requires it to round.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/engine/spoilt.h"

namespace softmoe::verify {
namespace {

// Somebody's correct program in double, which computes differently from the
// reference.
class AnotherInDouble : public Implementation {
 public:
  std::string name() const override { return "another"; }
  std::string WhyUnsupported(const Operation&, Dtype) const override {
    return "";
  }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int) override {
    return op.name() == "rope" ? Rope(c, inputs) : AdamW(c, inputs);
  }

 private:
  // The angle by a quotient of powers, as programs with a table of them do.
  static TensorMap Rope(const Case& c, const TensorMap& inputs) {
    const int64_t dim = c.Size("head_dim"), half = dim / 2;
    const auto turn = [&](const char* name, double sign) {
      Tensor x = inputs.at(name);
      for (int64_t t = 0; t < x.shape[0]; ++t) {
        for (int64_t j = 0; j < 2 * c.Size("heads") * half; ++j) {
          const int64_t pair = j % half;
          const double frequency = 1 / std::pow(inputs.at("base").values[0],
                                                static_cast<double>(2 * pair) /
                                                    static_cast<double>(dim));
          const double angle =
              static_cast<double>(t % c.Size("length")) * frequency;
          double& a = x.values[t * x.shape[1] + j / half * dim + pair];
          double& b = *(&a + half);
          const double cosine = std::cos(angle), sine = sign * std::sin(angle);
          const double turned = a * cosine - b * sine;
          b = a * sine + b * cosine;
          a = turned;
        }
      }
      return x;
    };
    return {{"rotated", turn("qkv", 1)}, {"d_qkv", turn("d_rotated", -1)}};
  }

  static double PairwiseSquares(std::span<const double> x) {
    if (x.size() == 1) return x[0] * x[0];
    const size_t half = x.size() / 2;
    return PairwiseSquares(x.first(half)) + PairwiseSquares(x.subspan(half));
  }
  // One step, with its squares summed pairwise and powers as exponentials.
  static TensorMap AdamW(const Case& c, const TensorMap& inputs) {
    const auto scalar = [&](const char* name) {
      return inputs.at(name).values[0];
    };
    const double t = static_cast<double>(c.Size("completed")) + 1;
    const auto correction = [&](double beta) {
      return -std::expm1(t * std::log(beta));
    };
    const std::vector<double>& gradient = inputs.at("gradient").values;
    const double norm = std::sqrt(PairwiseSquares(gradient));
    const double clip = std::min(1.0, scalar("clip_norm") / norm);
    const double beta1 = scalar("beta1"), beta2 = scalar("beta2");
    Tensor p = inputs.at("parameter"), m = inputs.at("first_moment"),
           v = inputs.at("second_moment");
    for (int64_t i = 0; i < p.size(); ++i) {
      const double g = clip * gradient[i];
      m.values[i] = beta1 * m.values[i] + (1 - beta1) * g;
      v.values[i] = beta2 * v.values[i] + (1 - beta2) * g * g;
      const double step =
          m.values[i] / correction(beta1) /
          (std::sqrt(v.values[i] / correction(beta2)) + scalar("epsilon"));
      const double decay =
          i < c.Size("matrix_size") ? scalar("weight_decay") : 0;
      p.values[i] -= scalar("learning_rate") * (step + decay * p.values[i]);
    }
    Tensor norms(Dtype::kF64, {1});
    norms.values = {norm};
    return {{"parameter", p},
            {"first_moment", m},
            {"second_moment", v},
            {"norm", norms}};
  }
};

TEST(BoundsAtDtypes, AtF64ACorrectProgramMayComputeInAnotherWay) {
  AnotherInDouble another;
  const std::pair<const char*, int> kWords[] = {
      {"op=rope", 30},
      // The norm sums 40,002 squares, and every digit of it counts.
      {"op=adamw steps=1 matrix_size=40001 vector_size=1 clip_norm=1e-6 "
       "fill=generic",
       3},
      // 1 - beta^t cancels.
      {"op=adamw steps=1 matrix_size=300 clip_norm=1e6 fill=generic "
       "completed=3 beta1=0.999 beta2=0.9999",
       20}};
  for (const auto& [words, cases] : kWords) {
    double largest = 0;
    for (int i = 0; i < cases; ++i) {
      const Case c = ParseCase(std::string(words) +
                               " dtype=f64 impl=another "
                               "case=" +
                               std::to_string(i));
      const CaseResult result = CheckCase(c, another);
      EXPECT_FALSE(result.failed()) << CaseText(c) << "\n" << result.reason;
      largest = std::max(largest, result.utilisation());
    }
    EXPECT_GT(largest, 1e-3) << words;  // the bound means something
  }
}

// The kernel bodies at double show what no comparison of floats can.
TEST(BoundsAtDtypes, DoubleSeesWhatFloatHides) {
  for (const auto& [base, code] :
       {std::pair<const char*, ExitCode>{"cpu:v3", ExitCode::kDone},
        {"cpu:double", ExitCode::kFailed}}) {
    CampaignOptions options;
    options.ops = {"experts"};
    options.impls = {std::string("faulty:one_part_in_1e9:d_hidden:") + base};
    options.fixed = {{"fill", "generic"}};
    options.cases = 10;
    const Suite suite = RunCampaign(options);
    EXPECT_EQ(suite.exit_code(), code) << SuiteText(suite);
  }
}

// All keys have the same values and hence the same products with d_out, which
// add up to exactly 0; the products of d_out with the rounded mean of the
// values do not.
TEST(BoundsAtDtypes, TheGradientOfAttentionMayUseTheRoundedOutput) {
  constexpr double kUnit = 0x1p-23, kA = 7654321 * kUnit, kB = 6123457 * kUnit;
  for (const std::string impl : {"cpu:v3 dtype=f32", "cpu:double dtype=f64"}) {
    const Case c = ParseCase(
        "op=attention fill=generic sequences=1 length=400 heads=1 head_dim=4 "
        "scale=1 impl=" +
        impl);
    TensorMap inputs = InputsOf(FindOperation(c.op), c);
    std::vector<double>& qkv = inputs.at("qkv").values;
    std::vector<double>& d_out = inputs.at("d_out").values;
    const double row[] = {0, 0, 0, 0, 1, 1, 1, 1, kA, kB, kA + kB, 0};
    const double d_row[] = {1, 1, -1, 0};
    for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = row[i % 12];
    for (size_t i = 0; i < d_out.size(); ++i) d_out[i] = d_row[i % 4];
    const CaseResult result =
        CheckInputs(c, inputs, *MakeImplementation(c.impl));
    EXPECT_FALSE(result.failed()) << CaseResultText(result);
  }
}

// Scores of size 1e5 that differ by less than their error: e^(difference) has
// no bound. The case is then inconclusive, unless an element that has a bound
// is wrong or an element is NaN.
TEST(BoundsAtDtypes, IllConditionedDataIsInconclusive) {
  const Operation& op = FindOperation("attention");
  for (const auto& [fault, status] :
       {std::pair<const char*, Status>{"none", Status::kInconclusive},
        {"one_nan", Status::kFail},
        {"batch", Status::kFail}}) {
    const auto implementation = MakeImplementation(
        std::string("faulty:") + fault + ":out:reference_f32");
    Case c = ParseCase(
        "op=attention fill=generic sequences=1 length=4 heads=1 "
        "head_dim=6 scale=1 impl=" +
        implementation->name());
    TensorMap inputs = InputsOf(op, c);
    Tensor& qkv = inputs["qkv"];
    for (int64_t i = 0; i < qkv.size(); ++i) {
      // Changes the last token only; its score against itself is the largest.
      if (i % 18 < 12 && i >= 3 * 18) qkv.values[i] = 3000 + i % 6;
    }
    const CaseResult result = CheckInputs(c, inputs, *implementation);
    EXPECT_EQ(result.outputs.at(0).comparison.status, status)
        << fault << "\n"
        << CaseResultText(result);
  }
}

// Where arithmetic in float ends with one rounding to bf16, the bound leaves no
// room for truncation.
TEST(BoundsAtDtypes, TruncationToBf16IsOutsideTheDerivedBounds) {
  for (const std::string fault : {"none", "truncate"}) {
    CampaignOptions options;
    options.ops = {"rmsnorm"};
    options.impls = {"faulty:" + fault + ":y:reference_bf16"};
    options.fixed = {{"rows", "9"}, {"fill", "generic"}};
    options.cases = 50;
    options.shrink = false;
    const Suite suite = RunCampaign(options);
    const int64_t failed = suite.units().begin()->second.Count(Status::kFail);
    EXPECT_TRUE(fault == "none" ? failed == 0 : failed > 45)
        << SuiteText(suite);
  }
}

// Outputs kept in float at bf16 are judged as float: a gradient that was stored
// as bf16 is found.
TEST(BoundsAtDtypes, AnOutputInFloatIsNotRoundedToBf16) {
  const Operation& op = FindOperation("rmsnorm");
  const auto reference = MakeImplementation("reference_bf16");
  const Case c = DrawCase(
      op, {{"dtype", "bf16"}, {"fill", "generic"}, {"rows", "9"}}, 1, 0);
  const TensorMap inputs = InputsOf(op, c);
  TensorMap outputs = reference->Run(op, c, inputs, 0);
  ASSERT_EQ(outputs.at("d_weight").dtype, Dtype::kF32);
  ASSERT_EQ(outputs.at("y").dtype, Dtype::kBf16);
  const Expected expected = ExpectOf(op, c, inputs, {});
  const ExpectedOutput& d_weight = expected.outputs.at("d_weight");
  int64_t outside = 0;
  for (int64_t i = 0; i < d_weight.values.size(); ++i) {
    const double value = d_weight.values.values[i];
    outside +=
        std::abs(RoundTo(Dtype::kBf16, value) - value) > d_weight.bounds[i];
  }
  EXPECT_GT(outside, d_weight.values.size() / 2);
  EXPECT_EQ(d_weight.derivation, "rmsnorm-f32/5");
  EXPECT_EQ(expected.outputs.at("y").derivation, "rmsnorm-f32/5+bf16/1");
}

// Elements that rope copies or cast rounds must be equal. No bound may hide an
// error in them: neither half of the gap above 1 nor the underflow of products.
TEST(BoundsAtDtypes, AtBf16WhatIsCopiedOrRoundedIsEqual) {
  const auto changed = [](const std::string& output, double (*change)(double)) {
    return Spoilt("reference_bf16",
                  [=](const TensorMap&, TensorMap& outputs, int) {
                    for (double& x : outputs.at(output).values) x = change(x);
                  });
  };
  const auto same = [](double x) { return x; };
  const auto next = [](double x) { return x == 1 ? 1 - 0x1p-8 : x; };
  const auto flush = [](double x) { return std::abs(x) < 0x1p-126 ? 0 : x; };
  const std::string rope = "op=rope sequences=1 length=1 heads=2 head_dim=4 ";
  const std::tuple<std::string, const char*, double (*)(double)> kChanges[] = {
      {rope + "fill=generic simplify=qkv:one", "rotated", next},
      {rope + "fill=subnormal", "rotated", flush},
      {"op=cast size=20 fill=subnormal", "rounded", flush}};
  for (const auto& [words, output, change] : kChanges) {
    const Case c = ParseCase(words + " dtype=bf16 impl=spoilt");
    Spoilt right = changed(output, same), wrong = changed(output, change);
    EXPECT_FALSE(CheckCase(c, right).failed()) << words;
    EXPECT_TRUE(CheckCase(c, wrong).failed()) << words;
  }
}

// The rule for bf16 lets a program be twice as far off as the naive one, but
// not wrong: each of these faults is found.
TEST(BoundsAtDtypes, TheRuleForBf16SeesFaults) {
  for (const std::string fault : {"zero", "sign", "twice", "neighbour"}) {
    for (const auto& [op, output] :
         {std::pair<const char*, const char*>{"rmsnorm", "d_x"},
          {"lm_head", "d_hidden"},
          {"attention", "out"},
          {"experts", "d_hidden"},
          {"embedding", "d_table"}}) {
      CampaignOptions options;
      options.ops = {op};
      options.impls = {"faulty:" + fault + ":" + output + ":reference_bf16"};
      options.fixed = {{"fill", "generic"}};
      options.cases = 10;
      options.shrink = false;
      const Suite suite = RunCampaign(options);
      EXPECT_GE(suite.units().begin()->second.Count(Status::kFail), 7)
          << SuiteText(suite);
    }
  }
}

// Storing logits as bf16 would change the weights here. Our kernels do not
// store them; other programs may, so their bounds exceed most values.
TEST(BoundsAtDtypes, OurKernelsAreHeldToWhatTheyStore) {
  for (const auto& [impl, status, derivation] :
       {std::tuple("faulty:batch:out:reference_bf16", Status::kMistrusted,
                   "twice-naive-bf16/5"),
        std::tuple("faulty:none:out:shim:bf16", Status::kPass,
                   "stored-operands/2+bf16/1"),
        std::tuple("same:shim:bf16,shim:bf16", Status::kPass,
                   "stored-operands/2+bf16/1"),
        std::tuple("faulty:batch:out:shim:bf16", Status::kFail,
                   "stored-operands/2+bf16/1")}) {
    const auto implementation = MakeImplementation(impl);
    const CaseResult result =
        CheckCase(ParseCase("op=attention dtype=bf16 fill=generic sequences=1 "
                            "length=80 heads=1 head_dim=40 scale=4",
                            impl),
                  *implementation);
    EXPECT_EQ(result.status, status) << CaseResultText(result);
    if (result.outputs.empty()) continue;
    EXPECT_EQ(result.outputs.at(0).derivation, derivation);
  }
}

// At bf16 tensor cores may truncate when they add: 2 u, and not 0 on average.
TEST(BoundsAtDtypes, AtBf16AnAdditionCountsTwice) {
  constexpr int kTerms = 300;
  const Operation& gemm = FindOperation("gemm");
  const Case product = DrawCase(gemm,
                                {{"dtype", "bf16"},
                                 {"fill", "generic"},
                                 {"m", "1"},
                                 {"n", "1"},
                                 {"k", std::to_string(kTerms)},
                                 {"accumulate", "no"}},
                                1, 0);
  const TensorMap factors = InputsOf(gemm, product);
  double terms = 0;
  for (int i = 0; i < kTerms; ++i) {
    terms += std::abs(factors.at("a").values[i] * factors.at("b").values[i]);
  }
  const ExpectedOutput c = ExpectOf(gemm, product, factors, {}).outputs.at("c");
  const double stored = std::ldexp(1.0, std::ilogb(c.values.values[0]) - 8);
  EXPECT_GE(c.bounds[0] - stored, 2 * kTerms * kFloatUnit * terms);

  const Operation& head = FindOperation("lm_head");
  Case losses = DrawCase(head,
                         {{"dtype", "bf16"},
                          {"fill", "generic"},
                          {"d_model", "70"},
                          {"rows", "1"},
                          {"vocab_size", "5"}},
                         1, 0);
  const auto bound = [&](const TensorMap& inputs) {
    return ExpectOf(head, losses, inputs, {}).outputs.at("loss").bounds[0];
  };
  TensorMap inputs = InputsOf(head, losses);
  const double at_bf16 = bound(inputs);
  losses.dtype = Dtype::kF32;
  for (const char* name : {"hidden", "head_weight"}) {
    inputs.at(name).dtype = Dtype::kF32;
  }
  EXPECT_GE(at_bf16, 1.9 * bound(inputs));  // not all of it is arithmetic
}

}  // namespace
}  // namespace softmoe::verify
