// SPDX-License-Identifier: Apache-2.0
//
// Every operation on the CPU kernels of every ISA level and in the simulator,
// with cases that RapidCheck draws afresh, is within the derived bounds and
// gives the same bits for every number of threads and every order of simulated
// threads. So is the rounded reference.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/engine/suite.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

// Everything that ran in this program's tests.
Suite& Everything() {
  static Suite suite;
  return suite;
}

// Operations of which kLeastCases must run on one implementation.
struct Declared {
  std::string impl;
  std::set<std::string> ops;
  bool may_lack;  // this machine may lack the level or the device
};
constexpr int64_t kLeastCases = 100;

// All operations that have an adapter, and the rounded reference.
std::vector<Declared> AllDeclared() {
  const auto names = [](const auto& adapters) {
    const auto keys = std::views::keys(adapters);
    return std::set<std::string>(keys.begin(), keys.end());
  };
  const Adapters& adapters = AdapterTable();
  const std::set<std::string> rows = names(adapters.rows);
  const std::set<std::string> bf16 = names(adapters.bf16);
  return {{"cpu:v3", rows, false},
          {"cpu:v4", rows, true},
          {"shim", rows, false},
          {"cuda", rows, true},
          {"reference_f32", rows, false},
          {"shim:bf16", bf16, false},
          {"cuda:bf16", bf16, true},
          {"reference_bf16", bf16, false},
          {"cpu:double", names(adapters.at_double), false}};
}

// Compares what ran with what is declared. Skipped cases did not run.
struct Tally {
  int64_t declared = 0, ran = 0;  // cases, of what is declared
  std::string lacking;            // what this machine lacks: a line each
  std::string wrong;  // fewer cases, or undeclared ones: a line each
};

Tally TallyOf(const std::vector<Declared>& declared, const Suite& suite) {
  Tally result;
  std::set<Unit> known;
  for (const auto& [impl, ops, may_lack] : declared) {
    const auto implementation = MakeImplementation(impl);
    for (const std::string& name : ops) {
      const Unit unit = {name, impl};
      known.insert(unit);
      const auto found = suite.units().find(unit);
      const int64_t ran =
          found == suite.units().end() ? 0 : found->second.ran();
      result.declared += kLeastCases;
      result.ran += std::min(ran, kLeastCases);
      if (ran >= kLeastCases) continue;
      const Operation& op = FindOperation(name);
      const std::string why =
          implementation->WhyUnsupported(op, DtypeFor(op, *implementation));
      (may_lack && !why.empty() ? result.lacking : result.wrong) +=
          fmt::format("{} of {} cases of {} on {} ran{}{}\n", ran, kLeastCases,
                      name, impl, why.empty() ? "" : ": ", why);
    }
  }
  for (const auto& [unit, statistics] : suite.units()) {
    if (statistics.ran() == 0 || known.contains(unit)) continue;
    result.wrong += fmt::format("{} cases of {} on {} ran, undeclared\n",
                                statistics.ran(), unit.op, unit.impl);
  }
  return result;
}

// In the end everything must have run, unless tests were filtered out by name.
class AtTheEnd : public ::testing::Environment {
 public:
  void TearDown() override {
    const Tally result = TallyOf(AllDeclared(), Everything());
    fmt::print("{} of {} declared cases ran\n{}", result.ran, result.declared,
               result.lacking);
    if (::testing::GTEST_FLAG(filter) != "*") return;
    EXPECT_EQ(result.wrong, "");
  }
};
const auto* const kAtTheEnd = ::testing::AddGlobalTestEnvironment(new AtTheEnd);

// A suite of `cases` cases of lapsum.
Suite LapSums(const std::string& impl, int64_t cases,
              Status status = Status::kPass) {
  Suite suite;
  for (int64_t i = 0; i < cases; ++i) {
    CaseResult result;
    result.c.op = "lapsum";
    result.c.impl = impl;
    result.status = status;
    suite.Add(result);
  }
  return suite;
}

TEST(DeclaredCases, MustRunAndNoOthers) {
  const std::vector<Declared> lapsum = {{"cpu:v3", {"lapsum"}, false}};
  EXPECT_EQ(TallyOf(lapsum, LapSums("cpu:v3", 100)).wrong, "");
  EXPECT_EQ(TallyOf(lapsum, LapSums("cpu:v3", 100, Status::kFail)).wrong, "");
  EXPECT_EQ(TallyOf(lapsum, LapSums("cpu:v3", 99)).wrong,
            "99 of 100 cases of lapsum on cpu:v3 ran\n");
  EXPECT_EQ(TallyOf(lapsum, LapSums("cpu:v3", 100, Status::kUnsupported)).ran,
            0);
  // Cases of the reference do not count for the kernels.
  EXPECT_EQ(TallyOf(lapsum, LapSums("reference_f32", 100)).wrong,
            "0 of 100 cases of lapsum on cpu:v3 ran\n"
            "100 cases of lapsum on reference_f32 ran, undeclared\n");
}

// A missing level or device excuses only the cases that need it, and only where
// it may be missing. No machine has lapsum with bf16 activations.
TEST(DeclaredCases, ThatAMachineLacksDidNotRun) {
  const Tally lacking = TallyOf({{"shim:bf16", {"lapsum"}, true}}, Suite());
  EXPECT_EQ(lacking.declared, 100);
  EXPECT_EQ(lacking.ran, 0);
  EXPECT_EQ(lacking.wrong, "");
  EXPECT_TRUE(Says(lacking.lacking, "0 of 100 cases of lapsum on shim:bf16"));
  EXPECT_NE(TallyOf({{"shim:bf16", {"lapsum"}, false}}, Suite()).wrong, "");
  EXPECT_NE(TallyOf({{"cpu:v3", {"lapsum"}, true}}, Suite()).wrong, "");
}

// The number may only grow: raise it when operations or adapters are added.
TEST(DeclaredCases, AreNoFewerThanBefore) {
  EXPECT_GE(TallyOf(AllDeclared(), Suite()).declared, 13300);
}

// Case numbers without and with a call before (IsCheckedAfterAnother).
constexpr uint32_t kAlone = 0, kAfterAnother = 1;

class EveryOperation : public ::testing::TestWithParam<const Operation*> {};

TEST_P(EveryOperation, IsWithinItsBoundsOnEveryImplementation) {
  const Operation& op = *GetParam();
  std::map<Dtype, std::vector<std::unique_ptr<Implementation>>> offered;
  for (const std::string& name : ImplementationNames()) {
    if (name.starts_with("ptx")) continue;  // ptx_property_test
    auto implementation = MakeImplementation(name);
    const Dtype dtype = DtypeFor(op, *implementation);
    if (!implementation->WhyUnsupported(op, dtype).empty()) {
      // This may be a level that this machine lacks, or an operation without
      // CUDA source, double body or bf16; cpu:v3 and the reference run
      // everything that there is in float.
      ASSERT_TRUE((name != "cpu:v3" && name != "reference_f32") ||
                  std::ranges::count(op.dtypes(), Dtype::kF32) == 0)
          << name;
      continue;
    }
    offered[dtype].push_back(std::move(implementation));
  }
  Suite suite;
  for (const auto& group : offered) {
    const std::string name = DtypeName(group.first);
    // Each case is drawn once for all implementations; the reference computes
    // it once, too, unless they make choices.
    const bool holds = rc::check(name, [&] {
      Case c = DrawCase(op, {{"dtype", name}}, *rc::gen::arbitrary<uint64_t>(),
                        *rc::gen::element(kAlone, kAfterAnother));
      std::string failures;
      for (const auto& implementation : group.second) {
        c.impl = implementation->name();
        const CaseResult result = CheckCase(c, *implementation);
        suite.Add(result);
        Everything().Add(result);
        if (result.failed()) {
          failures += result.reason + "\n" + ReproLine(result) + "\n";
        }
      }
      if (!failures.empty()) RC_FAIL(failures);
    });
    EXPECT_TRUE(holds) << name;
  }
  EXPECT_TRUE(suite.Mistrusted().empty()) << SuiteText(suite);
  std::fputs(SuiteText(suite).c_str(), stdout);
}

INSTANTIATE_TEST_SUITE_P(All, EveryOperation, ::testing::ValuesIn(Operations()),
                         [](const auto& info) { return info.param->name(); });

// The accepted error (DESIGN.md, "One kernel source"), relative to the largest
// element of a tensor or to 1. No wrong epsilon of float size survives this.
constexpr double kOneSource = 1e-11;

TEST(BodiesAtDouble, AgreeWithTheReference) {
  const auto bodies = MakeImplementation("cpu:double");
  int operations = 0;
  double largest = 0;
  for (const Operation* op : Operations()) {
    if (!bodies->WhyUnsupported(*op, Dtype::kF64).empty()) continue;
    ++operations;
    for (uint32_t number = 0; number < 50; ++number) {
      const Case c = DrawCase(*op, {{"impl", "cpu:double"}, {"dtype", "f64"}},
                              20260120, number);
      Evidence seen;
      ASSERT_FALSE(CheckCase(c, *bodies, &seen).failed()) << CaseText(c);
      for (const auto& [name, expected] : seen.expected.outputs) {
        const auto got = seen.got.find(name);
        if (got == seen.got.end()) continue;                 // optional
        if (expected.values.dtype == Dtype::kI32) continue;  // counts
        double scale = 1, error = 0;
        for (int64_t i = 0; i < got->second.size(); ++i) {
          const double value = expected.values.values[i];
          scale = std::max(scale, std::abs(value));
          error = std::max(error, std::abs(got->second.values[i] - value));
        }
        EXPECT_LE(error, kOneSource * scale) << name << " of " << CaseText(c);
        largest = std::max(largest, error / scale);
      }
    }
  }
  EXPECT_GE(operations, 8);
  std::printf("largest error %.2g\n", largest);
}

}  // namespace
}  // namespace softmoe::verify
