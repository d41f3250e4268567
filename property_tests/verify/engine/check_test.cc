// SPDX-License-Identifier: Apache-2.0
//
// What a check refuses besides wrong numbers: an output that is missing or has
// the wrong shape, different bits under another schedule, results that depend
// on an earlier call, and other experts than scores and ties allow.
#include "property_tests/verify/engine/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/spoilt.h"

namespace softmoe::verify {
namespace {

using Spoil = std::function<void(TensorMap& outputs, int schedule)>;

CaseResult CheckSpoilt(const Spoil& spoil, const std::string& number = "0",
                       int schedules = 3) {
  Spoilt implementation(
      "reference_f32",
      [&](const TensorMap&, TensorMap& outputs, int schedule) {
        spoil(outputs, schedule);
      },
      schedules);
  return CheckCase(ParseCase("op=lapsum fill=generic rows=4 num_experts=7 "
                             "mean_active=2.5 temperature=1.5 spread=1 "
                             "impl=spoilt case=" +
                             number),
                   implementation);
}

void ExpectRefused(const CaseResult& result, const std::string& reason) {
  EXPECT_TRUE(result.failed());
  EXPECT_EQ(result.output, "weights");
  EXPECT_TRUE(Says(result.reason, reason));
}

TEST(Check, AcceptsWhatIsRight) {
  const CaseResult result = CheckSpoilt([](TensorMap&, int) {});
  EXPECT_EQ(result.status, Status::kPass) << result.reason;
}

TEST(Check, RefusesAMissingOutput) {
  ExpectRefused(
      CheckSpoilt([](TensorMap& outputs, int) { outputs.erase("weights"); }),
      "is missing");
}

TEST(Check, RefusesAnotherShapeOfTheSameSize) {
  ExpectRefused(CheckSpoilt([](TensorMap& outputs, int) {
                  outputs.at("weights").shape = {7, 4};
                }),
                "has shape");
}

TEST(Check, RefusesOtherBitsUnderTheLastSchedule) {
  ExpectRefused(CheckSpoilt([](TensorMap& outputs, int schedule) {
                  double& last = outputs.at("weights").values.back();
                  if (schedule == 2) last = StepBy(Dtype::kF32, last, 1);
                }),
                "schedule 2");
}

TEST(Check, RefusesWhatTheCallBeforeLeftBehind) {
  int calls = 0;
  ExpectRefused(CheckSpoilt(
                    [&calls](TensorMap& outputs, int) {
                      if (++calls > 1) outputs.at("weights").values.back() += 1;
                    },
                    "1"),
                "over their bound");
}

TEST(Check, RefusesAWrongFirstCall) {
  int calls = 0;
  ExpectRefused(CheckSpoilt([&calls](TensorMap& outputs, int) {
                  if (++calls == 1) outputs.at("weights").values.back() += 1;
                }),
                "over their bound");
}

TEST(Check, TakesALackOfMemoryForNoFailure) {
  for (const int lacking : {0, 2}) {  // in the first call, and in a later one
    EXPECT_TRUE(Says(MessageOf(ExitCode::kEnvironment,
                               [&] {
                                 CheckSpoilt([&](TensorMap&, int schedule) {
                                   if (schedule == lacking) {
                                     throw std::bad_alloc();
                                   }
                                 });
                               }),
                     "out of memory"))
        << lacking;
  }
}

TEST(Check, TellsWhatVariesFromWhatRemembers) {
  int calls = 0;
  Tensor kept;
  const Spoil varies = [&](TensorMap& outputs, int) {
    std::vector<double>& weights = outputs.at("weights").values;
    for (double& x : weights) x = -x;
    if (++calls % 2 == 0) {
      weights.back() = StepBy(Dtype::kF32, weights.back(), 1);
    }
  };
  const Spoil remembers = [&](TensorMap& outputs, int) {
    Tensor& weights = outputs.at("weights");
    const Tensor clean = weights;
    for (int64_t i = 0; i < kept.size(); ++i) {
      weights.values[i] += kept.values[i];
    }
    kept = clean;
  };
  Tensor first;
  const Spoil keeps = [&](TensorMap& outputs, int) {
    if (first.shape.empty()) first = outputs.at("weights");
    outputs.at("weights") = first;
  };
  for (const auto& [spoil, hint] :
       {std::pair(varies, "not deterministic"),
        std::pair(remembers, "depends on earlier calls"),
        std::pair(keeps, "the output of an earlier call")}) {
    const CaseResult result = CheckSpoilt(spoil, "1", /*schedules=*/1);
    ASSERT_FALSE(result.hints.empty());
    EXPECT_TRUE(Says(result.hints[0], hint));
  }
}

// Outputs that are wrong in the same way for all data, but do depend on it, and
// zeros are not taken for the output of an earlier call.
TEST(Check, TakesNothingElseForWhatRemembers) {
  for (const double factor : {2.0, 0.0}) {
    const CaseResult result = CheckSpoilt(
        [&](TensorMap& outputs, int) {
          for (double& x : outputs.at("weights").values) x *= factor;
        },
        "1", /*schedules=*/1);
    ASSERT_FALSE(result.hints.empty());
    for (const std::string& hint : result.hints) {
      EXPECT_EQ(hint.find("earlier call"), std::string::npos) << hint;
    }
  }
}

// A bundle may hold a case that fails only after another call.
TEST(Check, GivenInputsAreCheckedAfterAnotherCallToo) {
  for (const std::string text :
       {"op=embedding fill=generic rows=4 vocab_size=3 d_model=2 case=1 "
        "impl=faulty:stale:d_table:reference_f32",
        // A scalar, which has no sizes.
        "op=lapsum fill=generic rows=4 num_experts=3 case=1 "
        "impl=faulty:stale:d_mean_active:reference_f32"}) {
    const Case c = ParseCase(text);
    const TensorMap inputs = InputsOf(FindOperation(c.op), c);
    EXPECT_TRUE(CheckInputs(c, inputs, *MakeImplementation(c.impl)).failed())
        << text;
    EXPECT_FALSE(
        CheckInputs(c, inputs, *MakeImplementation("reference_f32")).failed())
        << text;
  }
}

TEST(Check, GuardedArraysAreAlignedAndWatched) {
  for (const int64_t size : {0, 1, 7, 64}) {
    const std::pair<int64_t, const char*> kWrites[] = {
        {-64, "a: written 64 before the beginning"},
        {-1, "a: written 1 before the beginning"},
        {size, "a: written 1 past the end"},
        {size + 63, "a: written 64 past the end"},
    };
    for (const auto& [at, message] : kWrites) {
      Guarded<int32_t> a("a", size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 16u);
      Guarded<int32_t> aligned("b", {1, 2}, 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.data()) % 64, 0u);
      EXPECT_EQ(std::ssize(a.Take()), size);
      a.data()[at] = 1;
      EXPECT_TRUE(Says(MessageOf<NumericsError>([&] { a.Take(); }), message));
    }
  }
}

// A sequence of one token has v as its output, which bf16 holds exactly.
TEST(Check, TruncationLeavesWhatTheTypeHolds) {
  const Case c = ParseCase(
      "op=attention dtype=bf16 fill=generic sequences=2 length=1 heads=1 "
      "head_dim=8 scale=1 impl=reference_bf16");
  const CaseResult result = CheckCase(c, *MakeImplementation(c.impl));
  ASSERT_EQ(result.status, Status::kPass) << result.reason;
  for (const OutputResult& output : result.outputs) {
    if (output.output == "out") {
      EXPECT_EQ(output.truncation, 0);
    }
  }
}

// Truncation does not show in outputs that are double, whatever the dtype of
// the case.
TEST(Check, TruncationOfADoubleIsHalfOfItsGap) {
  for (const std::string text :
       {"op=sum_of_squares fill=generic size=1000 dtype=f32 impl=reference_f32",
        "op=attention fill=generic length=9 dtype=f64 impl=reference_f64"}) {
    const Case c = ParseCase(text);
    const CaseResult result = CheckCase(c, *MakeImplementation(c.impl));
    ASSERT_EQ(result.status, Status::kPass) << result.reason;
    EXPECT_GT(result.outputs.at(0).truncation, 0);
    EXPECT_LT(result.outputs.at(0).truncation, 1);
  }
}

// Expectations follow from the case and from every bit of the inputs, whatever
// was asked before.
TEST(Check, ExpectsWhatFollowsFromTheseInputs) {
  const Operation& op = FindOperation("add");
  const Case c = ParseCase("op=add fill=generic size=2 scale=1 impl=spoilt");
  TensorMap inputs = InputsOf(op, c);
  inputs.at("x").values = {0, 1};
  inputs.at("y_before").values = {-0.0, 1};
  const auto expected = [&](const Case& asked) {
    return ExpectOf(op, asked, inputs, {}).outputs.at("y");
  };
  EXPECT_FALSE(std::signbit(expected(c).values.values[0]));
  inputs.at("x").values[0] = -0.0;
  EXPECT_TRUE(std::signbit(expected(c).values.values[0]));
  Case exact = c;
  exact.fill.name = "exact";
  EXPECT_NE(expected(exact).derivation, expected(c).derivation);
}

// Expects the same after other data: the reference's functions keep no state.
TEST(Check, ExpectsTheSameOfEveryOperationAgain) {
  for (const Operation* op : Operations()) {
    const Case c = DrawCase(*op, {}, 20260120, 1);
    const TensorMap inputs = InputsOf(*op, c);
    const Expected first = ExpectOf(*op, c, inputs, {});
    const Case other = OtherData(c);
    ExpectOf(*op, other, InputsOf(*op, other), {});
    const Expected again = ExpectOf(*op, c, inputs, {});
    ASSERT_EQ(first.outputs.size(), again.outputs.size());
    for (const auto& [name, output] : first.outputs) {
      const ExpectedOutput& repeated = again.outputs.at(name);
      EXPECT_TRUE(SameBits(output.values, repeated.values))
          << op->name() << " " << name;
      EXPECT_EQ(output.bounds, repeated.bounds) << op->name() << " " << name;
    }
  }
}

TEST(Check, RefusesBoundsOfAnotherFormula) {
  const Tensor values = FromVector(Dtype::kF64, {2}, std::vector{0.5, 0.25});
  const auto bounds_of = [&](double second) {
    return FromBounds("weights", values, {{0.5, 1e-3}, {second, 1e-3}}, "");
  };
  EXPECT_EQ(bounds_of(0.25).bounds,
            std::vector<double>(2, 1e-3 + property_tests::kUnderflow));
  for (const double second : {0.25 + 1e-6, NAN + 0.0}) {
    EXPECT_TRUE(Says(MessageOf<InternalError>([&] { bounds_of(second); }),
                     "weights[1]: the bound is for another formula"));
  }
  EXPECT_TRUE(Says(MessageOf<InternalError>([&] {
                     FromBounds("weights", values, {{0.5, 1e-3}}, "");
                   }),
                   "weights: 2 values, 1 bounds"));
  EXPECT_EQ(
      FromBounds("weights", values, {{0.5, 1e-3}, {0.25, NAN}}, "").bounds[1],
      HUGE_VAL);
}

// Checks a selection together with all that follows from it, so that only the
// selection can be wrong.
CaseResult CheckSelection(const std::vector<double>& active) {
  const Operation& op = FindOperation("router");
  const Case c = ParseCase(
      "op=router kind=sparse fill=all_equal rows=2 num_experts=4 max_active=2 "
      "spread=1 temperature=1.5 mean_active=1.5 tau=0 fallback=none "
      "impl=spoilt");
  TensorMap choice = {{"active", FromVector(Dtype::kI32, {2, 4}, active)}};
  TensorMap theirs;
  for (const auto& [name, output] :
       ExpectOf(op, c, InputsOf(op, c), choice).outputs) {
    theirs[name] = output.values;
    if (theirs[name].dtype == Dtype::kF64) theirs[name].dtype = Dtype::kF32;
    RoundValues(theirs[name]);
  }
  Spoilt implementation(
      "reference_f32",
      [&](const TensorMap&, TensorMap& outputs, int) { outputs = theirs; },
      /*schedules=*/3);
  return CheckCase(c, implementation);
}

// Refuses a selection that is wrong beyond its margin, and one that contradicts
// the implementation's own weights at the cutoff itself.
TEST(Check, RefusesSelectionsWithoutExcuse) {
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

TEST(Check, RefusesOtherExpertsThanTheLowerOnesAtATie) {
  EXPECT_EQ(CheckSelection({1, 1, 0, 0, 1, 1, 0, 0}).status, Status::kPass);
  const std::string order = "ties to the lower expert";
  for (const auto& [active, reason] :
       {std::pair(std::vector<double>{1, 1, 0, 0, 0, 1, 1, 0}, order),
        {{0, 0, 1, 1, 0, 0, 1, 1}, order},
        {{0, 0, 0, 0, 0, 0, 0, 0}, "0 active experts instead of 2"}}) {
    const CaseResult result = CheckSelection(active);
    EXPECT_TRUE(result.failed());
    EXPECT_EQ(result.output, "active");
    EXPECT_TRUE(Says(result.reason, reason));
  }
}

}  // namespace
}  // namespace softmoe::verify
