// SPDX-License-Identifier: Apache-2.0
//
// `verify run` finds planted faults of different kinds, in different operations
// and implementations, shrinks each to a case that a person can read, and
// explains it by the right hint. PLANTED_FAULTS.md shows them; this test runs
// its lines, and prints new ones if they do not hold. Faults are found in every
// output of every operation, and by the self-check.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/commands.h"
#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

struct PlantedImplementation {
  const char *op, *fault, *output, *base;
  const char* hint;          // "": one element alone shows no pattern
  int64_t largest_size = 2;  // sizes of the shrunk case
};
constexpr PlantedImplementation kPlanted[] = {
    {"router", "zero", "gates", "cpu:v3", "zero where something is expected"},
    {"lapsum", "sign", "d_mean_active", "cpu:v3", "the sign is flipped"},
    {"router", "times_temperature", "d_scores", "shim", "= temperature"},
    {"experts", "twice", "d_gates", "cpu:v3", "= 2"},
    {"attention", "one_part_in_1e4", "out", "cpu:v3", "1.0001 for all"},
    {"experts", "one_part_in_1e9", "d_hidden", "cpu:double",
     "in full: got 1.65"},
    {"rmsnorm", "tail", "d_x", "shim", "last partial group of 8", 9},
    {"lm_head", "batch", "d_hidden", "cpu:v3", "rows above 0"},
    {"embedding", "neighbour", "out", "cpu:v3", "row t+1's values"},
    {"balance_sums", "one_nan", "basis_sums", "cpu:v3", "NaN"},
    {"router", "flip_one", "active", "cpu:v3", ""},
    {"embedding", "stale", "d_table", "cpu:v3", "depends on earlier calls"},
};

// The number of elements that a person has to read: those neither 0 nor a
// parameter.
int64_t ElementsToRead(const Case& c) {
  int64_t count = 0;
  for (const auto& [name, tensor] : InputsOf(FindOperation(c.op), c)) {
    if (tensor.shape.empty()) continue;
    for (const double x : tensor.values) count += x != 0;
  }
  return count;
}

class PlantedFaults : public ::testing::TestWithParam<PlantedImplementation> {};

TEST_P(PlantedFaults, IsFoundAndShrunkAsDocumented) {
  const PlantedImplementation& planted = GetParam();
  CampaignOptions options;
  options.ops = {planted.op};
  options.impls = {fmt::format("faulty:{}:{}:{}", planted.fault, planted.output,
                               planted.base)};
  options.seed = 20260120;
  options.cases = 40;
  options.max_shrunk = 1;
  const Suite found = RunCampaign(options);
  EXPECT_EQ(found.exit_code(), ExitCode::kFailed);
  ASSERT_FALSE(found.failures().empty()) << SuiteText(found);
  const CaseResult& smallest = found.failures().front().smallest;
  EXPECT_EQ(smallest.output, planted.output);
  EXPECT_LE(ElementsToRead(smallest.c), 24) << CaseText(smallest.c);
  for (const auto& [name, window] : smallest.c.sizes) {
    EXPECT_LE(window.count, planted.largest_size) << CaseText(smallest.c);
  }
  std::string hints;
  for (const std::string& hint : smallest.hints) hints += hint + "; ";
  EXPECT_TRUE(Says(hints, planted.hint)) << CaseText(smallest.c);
  EXPECT_EQ(hints.empty(), planted.hint[0] == '\0') << hints;
  const std::string row =
      fmt::format("    {}\n    hint: {}\n", ReproLine(smallest),
                  smallest.hints.empty() ? "none" : smallest.hints.front());
  fmt::print("{}", row);

  // A line alone finds its failure again, with the same numbers: both the line
  // found here and the documented one.
  const auto again = [](const std::string& line) {
    const Case c = ParseCase(StripRepro(line));
    const auto implementation = MakeImplementation(c.impl);
    return ReproLine(CheckCase(c, *implementation));
  };
  EXPECT_EQ(again(ReproLine(smallest)), ReproLine(smallest));
  const std::string page =
      ReadWholeFile(RunfilePath("property_tests/verify/PLANTED_FAULTS.md"));
  const size_t at =
      page.find(fmt::format("REPRO v{} verify run op={} impl={} ",
                            kReproVersion, planted.op, options.impls[0]));
  ASSERT_NE(at, std::string::npos)
      << "PLANTED_FAULTS.md lacks this fault; write there:\n"
      << row;
  const std::string line = page.substr(at, page.find('\n', at) - at);
  EXPECT_EQ(again(line), line)
      << "PLANTED_FAULTS.md is of another program; write there:\n"
      << row;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedFaults, ::testing::ValuesIn(kPlanted),
                         [](const auto& info) {
                           return std::string(info.param.op) + "_" +
                                  info.param.fault;
                         });

// "none" is right; campaign_test shows that "truncate" is within f32's bounds.
TEST(Planted, AreOfEveryKind) {
  for (const FaultInfo& fault : Faults()) {
    if (fault.name == "none" || fault.name == "truncate") continue;
    EXPECT_TRUE(std::ranges::any_of(kPlanted, [&](const auto& planted) {
      return planted.fault == fault.name;
    })) << fault.name;
  }
}

TEST(Planted, AreFoundByTheSelfCheck) { CheckSelf(); }

// Every output of every operation is checked: a fault in it is found.
TEST(Planted, AreFoundInEveryOutputOfEveryOperation) {
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

}  // namespace
}  // namespace softmoe::verify
