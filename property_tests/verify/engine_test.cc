// SPDX-License-Identifier: Apache-2.0
//
// The engine accepts what is right, judges by bounds that tell right from
// wrong, and reports all that it has found. What it finds of planted faults:
// planted_faults_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <tuple>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/commands.h"
#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/engine/shrink.h"

namespace softmoe::verify {
namespace {

Suite Hunt(const std::string& impl, int64_t cases = 12,
           const CasePattern& fixed = {}) {
  CampaignOptions options;
  options.ops = {"lapsum"};
  options.impls = {impl};
  options.seed = 20260120;
  options.cases = cases;
  options.fixed = fixed;
  return RunCampaign(options);
}

TEST(Engine, ChecksItself) { CheckSelf(); }

TEST(Engine, AcceptsWhatIsRight) {
  const Suite found = Hunt("faulty:none:d_scores:reference_f32", 100);
  EXPECT_EQ(found.exit_code(), ExitCode::kDone) << SuiteText(found);
  const UnitStatistics& unit = found.units().begin()->second;
  EXPECT_EQ(unit.ran(), 100);
  // By then, generic data and most of the directed fills have been drawn.
  EXPECT_GE(unit.fills.size(), 8u);
  EXPECT_GT(unit.outputs.at("d_scores").utilisation, 0);
}

// Its REPRO line passes: the report says why.
TEST(Engine, SaysWhichFailuresNeedEarlierCases) {
  CampaignOptions options;
  options.ops = {"lapsum"};
  options.impls = {"reference_f32"};
  options.cases = 3;
  options.first = 6;
  options.max_shrunk = 1;
  std::set<const Implementation*> used;
  options.check = [&](const Case& c, Implementation& implementation) {
    CaseResult result = CheckCase(c, implementation);
    if (!used.insert(&implementation).second) {
      result.status = Status::kFail;
      result.output = "weights";
    }
    return result;
  };
  const Suite suite = RunCampaign(options);
  ASSERT_EQ(suite.failures().size(), 1u) << SuiteText(suite);
  EXPECT_TRUE(
      Says(FailureText(suite.failures()[0]), "passes alone", "from case=6 on"));
  // Others fail alone.
  const Suite found = Hunt("faulty:sign:weights:reference_f32");
  EXPECT_FALSE(Says(FailureText(found.failures().at(0)), "passes alone"));
}

TEST(Engine, FaultsOfOutputsThatNobodyHasAreRefused) {
  EXPECT_TRUE(Says(MessageOf<ConfigError>([] {
                     MakeImplementation("faulty:zero:wieghts:cpu:v3");
                   }),
                   "no operation has an output 'wieghts'",
                   "did you mean 'weights'?"));
}

// Most of its gates are 0, without a rounding: those say nothing, and the
// others do.
TEST(Engine, ARouterOfFewExpertsAmongManyIsTrusted) {
  CampaignOptions options;
  options.ops = {"router"};
  options.impls = {"reference_f32"};
  options.fixed = {{"max_active", "2"}, {"num_experts", "16"}};
  options.cases = 30;
  const Suite suite = RunCampaign(options);
  EXPECT_EQ(suite.exit_code(), ExitCode::kDone) << SuiteText(suite);
}

// It has no k_l, so nothing but 0 is right.
TEST(Engine, ASparseRouterIsJudged) {
  for (const std::string fault : {"none", "one_nan"}) {
    CampaignOptions options;
    options.ops = {"router"};
    options.impls = {"faulty:" + fault + ":d_mean_active:reference_f32"};
    options.fixed = {{"kind", "sparse"}};
    options.cases = 20;
    options.shrink = false;
    const Suite suite = RunCampaign(options);
    EXPECT_EQ(suite.exit_code(),
              fault == "none" ? ExitCode::kDone : ExitCode::kFailed)
        << SuiteText(suite);
  }
}

// Somebody's correct program in double, which need not compute as the reference
// does.
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

TEST(Engine, AtF64ACorrectProgramMayComputeInAnotherWay) {
  AnotherInDouble another;
  const std::pair<const char*, int> kWords[] = {
      {"op=rope", 30},
      // Of a sum of 40,002 squares, every digit of the norm counts.
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
    EXPECT_GT(largest, 1e-3) << words;  // not by a bound without meaning
  }
}

// Every output of every operation is checked: a fault in it is found.
TEST(Engine, SeesAFaultInEveryOutputOfEveryOperation) {
  for (const Operation* op : Operations()) {
    const auto& dtypes = op->dtypes();
    const bool has_f32 = std::ranges::count(dtypes, Dtype::kF32) > 0;
    for (const OutputSpec& output : op->outputs()) {
      CampaignOptions options;
      options.ops = {op->name()};
      options.impls = {"faulty:one_nan:" + output.name +
                       (has_f32 ? ":reference_f32" : ":reference_bf16")};
      options.cases = 1;
      options.shrink = false;
      const Suite found = RunCampaign(options);
      EXPECT_EQ(found.exit_code(), ExitCode::kFailed)
          << op->name() << " " << output.name << "\n"
          << SuiteText(found);
    }
  }
}

// A selection that is wrong beyond its margin, and one that contradicts the
// implementation's own weights at the cutoff itself.
TEST(Engine, RefusesSelectionsWithoutExcuse) {
  for (const std::string fill : {"generic", "cutoff_exact", "one_expert_all"}) {
    const std::string impl = "faulty:flip_one:active:reference_f32";
    const auto implementation = MakeImplementation(impl);
    const Case c = ParseCase(
        "op=router kind=soft fallback=none rows=3 num_experts=8 max_active=8 "
        "mean_active=2.5 tau=1.25 spread=1 temperature=0.7 fill=" +
        fill + " impl=" + impl);
    const CaseResult result = CheckCase(c, *implementation);
    EXPECT_TRUE(result.failed()) << fill;
    EXPECT_EQ(result.output, "active") << result.reason;
  }
}

// A dimension at its smallest size is left alone, so shrinking ends by itself.
TEST(Engine, ShrinkingEnds) {
  CampaignOptions options;
  options.ops = {"router"};
  options.impls = {"faulty:twice:d_scores:reference_f32"};
  options.cases = 1;
  const Suite found = RunCampaign(options);
  ASSERT_EQ(found.failures().size(), 1u) << SuiteText(found);
  const Failure& failure = found.failures().front();
  EXPECT_LT(failure.shrink_runs, 200);
  EXPECT_EQ(failure.smallest.c.Size("num_experts"), 2);
}

// A window may lie far inside a large size; what shrinking prints can be read.
TEST(Engine, ShrinkingStaysWithinTheWindowsOfALine) {
  CaseResult found;
  found.c = ParseCase("op=embedding vocab_size=66000 rows=1 d_model=1");
  found.status = Status::kFail;
  // Only the last row of the table is wrong.
  const Checker check = [](const Case& c, Implementation&) {
    CaseResult result;
    result.c = c;
    const Window& rows = c.sizes.at("vocab_size");
    if (rows.first + rows.count == 66000) result.status = Status::kFail;
    return result;
  };
  const auto implementation = MakeImplementation("reference_f32");
  const Shrunk smallest = Shrink(found, *implementation, check);
  EXPECT_TRUE(smallest.result.failed());
  EXPECT_EQ(ParseCase(CaseText(smallest.result.c)), smallest.result.c);
}

// A truncated result is within 1 ulp, so within the bounds of f32: only the
// bias of the errors shows it.
TEST(Engine, TruncationShowsAsBias) {
  for (const std::string fault : {"none", "truncate"}) {
    CampaignOptions options;
    options.ops = {"rmsnorm"};
    options.impls = {"faulty:" + fault + ":y:reference_f32"};
    options.fixed = {{"fill", "generic"}, {"rows", "9"}};
    options.cases = 50;
    const Suite suite = RunCampaign(options);
    EXPECT_EQ(suite.exit_code(), ExitCode::kDone) << SuiteText(suite);
    bool biased = false;
    for (const std::string& warning : suite.Warnings()) {
      biased = biased || (warning.starts_with("BIAS") &&
                          warning.find("y: errors lean towards zero") !=
                              std::string::npos);
    }
    EXPECT_EQ(biased, fault == "truncate") << SuiteText(suite);
  }
}

// Where float's arithmetic ends in one rounding to bf16, its bound leaves no
// room for truncation.
TEST(Engine, TruncationToBf16IsOutsideTheDerivedBounds) {
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
TEST(Engine, AnOutputInFloatIsNotRoundedToBf16) {
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
  EXPECT_EQ(d_weight.derivation, "rmsnorm-f32/4");
  EXPECT_EQ(expected.outputs.at("y").derivation, "rmsnorm-f32/4+bf16/1");
}

// The bodies at double show what no comparison of floats can.
TEST(Engine, DoubleSeesWhatFloatHides) {
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

// The rule for bf16 lets a program be twice as far off as the naive one, but
// not wrong: each of these faults is found.
TEST(Engine, TheRuleForBf16SeesFaults) {
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

// Where logits that are stored as bf16 would change the weights: our kernels do
// not store them, somebody else's may.
TEST(Engine, OurKernelsAreHeldToWhatTheyStore) {
  for (const auto& [impl, status, derivation] :
       {std::tuple("faulty:batch:out:reference_bf16", Status::kPass,
                   "twice-naive-bf16/4"),
        std::tuple("faulty:none:out:shim:bf16", Status::kPass,
                   "stored-operands/1+bf16/1"),
        std::tuple("same:shim:bf16,shim:bf16", Status::kPass,
                   "stored-operands/1+bf16/1"),
        std::tuple("faulty:batch:out:shim:bf16", Status::kFail,
                   "stored-operands/1+bf16/1")}) {
    const auto implementation = MakeImplementation(impl);
    const CaseResult result =
        CheckCase(ParseCase("op=attention dtype=bf16 fill=generic sequences=1 "
                            "length=80 heads=1 head_dim=40 scale=8",
                            impl),
                  *implementation);
    EXPECT_EQ(result.status, status) << CaseResultText(result);
    if (result.outputs.empty()) continue;
    EXPECT_EQ(result.outputs.at(0).derivation, derivation);
  }
}

// At bf16 tensor cores may truncate when they add: 2 u, and not 0 on average.
TEST(Engine, AtBf16AnAdditionCountsTwice) {
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
  EXPECT_GE(at_bf16, 1.9 * bound(inputs));  // but for what is not arithmetic
}

// The values of all keys are the same, so their products with d_out are, and
// add up to exactly 0; the products of d_out with the mean of the values, as it
// is rounded, do not.
TEST(Engine, TheGradientOfAttentionMayUseTheRoundedOutput) {
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

// The reference at bf16, with the elements of one output changed.
class Changed : public Implementation {
 public:
  Changed(const char* output, double (*change)(double))
      : output_(output), change_(change) {}
  std::string name() const override { return "changed"; }
  std::string WhyUnsupported(const Operation&, Dtype) const override {
    return "";
  }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    TensorMap outputs = reference_->Run(op, c, inputs, schedule);
    for (double& x : outputs.at(output_).values) x = change_(x);
    return outputs;
  }

 private:
  std::string output_;
  double (*change_)(double);
  std::unique_ptr<Implementation> reference_ =
      MakeImplementation("reference_bf16");
};

// What rope copies and what cast rounds has no bound to hide in: neither half
// of the gap above 1, nor the underflow of products.
TEST(Engine, AtBf16WhatIsCopiedOrRoundedIsEqual) {
  const auto same = [](double x) { return x; };
  const auto next = [](double x) { return x == 1 ? 1 - 0x1p-8 : x; };
  const auto flush = [](double x) { return std::abs(x) < 0x1p-126 ? 0 : x; };
  const std::string rope = "op=rope sequences=1 length=1 heads=2 head_dim=4 ";
  const std::tuple<std::string, const char*, double (*)(double)> kChanges[] = {
      {rope + "fill=generic simplify=qkv:one", "rotated", next},
      {rope + "fill=subnormal", "rotated", flush},
      {"op=cast size=20 fill=subnormal", "rounded", flush}};
  for (const auto& [words, output, change] : kChanges) {
    const Case c = ParseCase(words + " dtype=bf16 impl=changed");
    Changed right(output, same), wrong(output, change);
    EXPECT_FALSE(CheckCase(c, right).failed()) << words;
    EXPECT_TRUE(CheckCase(c, wrong).failed()) << words;
  }
}

TEST(Engine, OneFaultIsReportedOnce) {
  const Suite found = Hunt("faulty:sign:d_scores:reference_f32", 40);
  ASSERT_EQ(found.failures().size(), 1u) << SuiteText(found);
  EXPECT_GE(found.failures().front().count, 30);
}

TEST(Engine, DegenerateDataIsMistrustedAndEmptyRunsAreNoSuccess) {
  // One expert, one row: every weight is k and no gradient flows.
  const Suite found =
      Hunt("reference_f32", 5,
           {{"rows", "3"}, {"num_experts", "1"}, {"fill", "generic"}});
  EXPECT_EQ(found.exit_code(), ExitCode::kMistrusted) << SuiteText(found);
  EXPECT_TRUE(Says(SuiteJUnit(found), "failures=\"0\" errors=\"1\"",
                   "<error type=\"MISTRUSTED\"", "none of which can tell"));
  EXPECT_EQ(Suite().exit_code(), ExitCode::kInconclusive);
}

// Beside others, an operation without elements is none.
TEST(Engine, NothingComparedIsNoSuccess) {
  CampaignOptions options;
  options.ops = {"add"};
  options.impls = {"reference_f32"};
  options.fixed = {{"size", "0"}};
  options.cases = 2;
  Suite suite = RunCampaign(options);
  EXPECT_EQ(suite.units().begin()->second.Count(Status::kPass), 2);
  EXPECT_EQ(suite.exit_code(), ExitCode::kInconclusive);
  EXPECT_TRUE(Says(SuiteText(suite),
                   "nothing compared: no output of add on "
                   "reference_f32 has elements in 2 cases"));
  EXPECT_TRUE(Says(SuiteJUnit(suite), "<error type=\"INCONCLUSIVE\""));
  const auto reference = MakeImplementation("reference_f32");
  suite.Add(CheckCase(
      ParseCase("op=add size=9 fill=generic case=1", reference->name()),
      *reference));
  suite.Add(CheckCase(ParseCase("op=lapsum rows=9 num_experts=5 fill=generic",
                                reference->name()),
                      *reference));
  EXPECT_EQ(suite.exit_code(), ExitCode::kDone) << SuiteText(suite);
  EXPECT_TRUE(Says(SuiteJUnit(suite), "errors=\"0\""));
}

// Scores of size 1e5 that differ by less than their error: e^(difference) has
// no bound. That decides nothing, unless an element that has a bound is wrong,
// or an element is not a number.
TEST(Engine, IllConditionedDataIsInconclusive) {
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
      // The last token alone; its score against itself is the largest.
      if (i % 18 < 12 && i >= 3 * 18) qkv.values[i] = 3000 + i % 6;
    }
    const CaseResult result = CheckInputs(c, inputs, *implementation);
    EXPECT_EQ(result.outputs.at(0).comparison.status, status)
        << fault << "\n"
        << CaseResultText(result);
  }
}

TEST(Engine, ReportsSayTheSame) {
  const Suite found = Hunt("faulty:sign:d_scores:reference_f32", 3);
  const nlohmann::ordered_json json = SuiteJson(found);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["stopped"], false);
  EXPECT_TRUE(json["ended_early"].is_null() && json["in_flight"].is_null());
  EXPECT_EQ(json["units"][0]["ran"], 3);
  const std::string repro = json["failures"][0]["repro"];
  EXPECT_EQ(repro, ReproLine(found.failures()[0].smallest));
  const std::string junit = SuiteJUnit(found);
  EXPECT_TRUE(Says(junit, "failures=\"1\"", "REPRO v5 verify run op=lapsum"));
  EXPECT_TRUE(Says(SuiteText(found), repro));
}

// What ends a campaign early loses nothing of what was found.
TEST(Engine, AnErrorLeavesWhatWasFound) {
  for (const bool log_fails : {true, false}) {
    for (const std::string fault : {"sign", "none"}) {
      CampaignOptions options;
      options.ops = {"lapsum"};
      options.impls = {"faulty:" + fault + ":d_scores:reference_f32"};
      options.cases = 5;
      int64_t results = 0;
      const EnvironmentError full("the disk is full");
      options.on_result = [&](const CaseResult&) {
        if (++results == 1 && log_fails) throw full;
      };
      options.check = [&](const Case& c, Implementation& implementation) {
        if (c.number == 1) throw full;
        return CheckCase(c, implementation);
      };
      options.max_shrunk = 0;
      Suite suite;
      EXPECT_THROW(RunCampaign(options, &suite), EnvironmentError);
      const bool failed = fault == "sign";
      EXPECT_FALSE(suite.stopped());
      EXPECT_EQ(suite.cases(), 1);
      EXPECT_EQ(suite.failures().size(), failed ? 1u : 0u);
      EXPECT_EQ(suite.exit_code(),
                failed ? ExitCode::kFailed : ExitCode::kEnvironment);
      EXPECT_TRUE(Says(SuiteText(suite), "ended early: the disk is full",
                       failed ? "FAIL: 1 cases" : "ERROR: 1 cases"));
      const nlohmann::ordered_json json = SuiteJson(suite);
      EXPECT_EQ(json["stopped"], false);
      EXPECT_EQ(json["ended_early"], "the disk is full");
      EXPECT_EQ(json["in_flight"].is_null(), log_fails);
      EXPECT_TRUE(Says(SuiteJUnit(suite), "tests=\"2\"", "errors=\"1\"",
                       "<error type=\"ERROR\" message=\"the disk is full\""));
    }
  }
}

TEST(Engine, RefusesNamesBeforeAnythingRuns) {
  EXPECT_THROW(StripRepro("REPRO v2 verify run op=lapsum"), ConfigError);
  EXPECT_THROW(Hunt("cpu:v5"), ConfigError);
  EXPECT_THROW(Hunt("gpu"), ConfigError);
  EXPECT_THROW(Hunt("faulty:sing:d_scores:cpu:v3"), ConfigError);
  EXPECT_THROW(Hunt("faulty:sign"), ConfigError);
  EXPECT_THROW(Hunt("reference_f32:x"), ConfigError);
  EXPECT_THROW(Hunt("reference_f32", 1, {{"rowz", "3"}}), ConfigError);
}

}  // namespace
}  // namespace softmoe::verify
