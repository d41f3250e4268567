// SPDX-License-Identifier: Apache-2.0
//
// Every operation on the CPU kernels of every ISA level and in the simulator,
// with cases that RapidCheck draws afresh, is within the derived bounds and
// gives the same bits for every number of threads and every order of simulated
// threads. So is the rounded reference.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/engine/suite.h"
#include "property_tests/verify/manifest.h"

namespace softmoe::verify {
namespace {

// Everything that ran in this program's tests.
Suite& Everything() {
  static Suite suite;
  return suite;
}

// Checks at the end that no fewer cases ran than declared, unless tests were
// left out by name.
class ManifestEnvironment : public ::testing::Environment {
 public:
  void TearDown() override {
    const ManifestCheck check = CheckManifest(Manifest(), Everything());
    std::fputs(ManifestText(check).c_str(), stdout);
    if (::testing::GTEST_FLAG(filter) != "*") return;
    EXPECT_TRUE(check.shortfalls.empty()) << ManifestText(check);
  }
};
const auto* const kManifestEnvironment =
    ::testing::AddGlobalTestEnvironment(new ManifestEnvironment);

// Numbers of cases without and with a call before (IsCheckedAfterAnother).
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
    // Each case is drawn once for all implementations, and expected once unless
    // they make choices.
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

// Acceptance (DESIGN.md, "One kernel source"), relative to the largest element
// of a tensor or to 1. No wrong epsilon of float size survives this.
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
