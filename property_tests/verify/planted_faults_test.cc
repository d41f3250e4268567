// SPDX-License-Identifier: Apache-2.0
//
// `verify fuzz` finds planted faults of different kinds, in different
// operations and implementations, and shrinks each to a case that a person can
// read. PLANTED_FAULTS.md shows them; this test runs its lines, and prints new
// ones where they no longer hold.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"

namespace softmoe::verify {
namespace {

struct PlantedImplementation {
  const char *op, *fault, *output, *base;
  bool hinted = true;  // one element alone shows no pattern
};
constexpr PlantedImplementation kPlanted[] = {
    {"router", "zero", "gates", "cpu:v3"},
    {"lapsum", "sign", "d_mean_active", "cpu:v3"},
    {"router", "times_temperature", "d_scores", "shim"},
    {"experts", "twice", "d_gates", "cpu:v3"},
    {"attention", "one_part_in_1e4", "out", "cpu:v3"},
    {"experts", "one_part_in_1e9", "d_hidden", "cpu:double", false},
    {"rmsnorm", "tail", "d_x", "shim"},
    {"lm_head", "batch", "d_hidden", "cpu:v3"},
    {"embedding", "neighbour", "out", "cpu:v3"},
    {"balance_sums", "one_nan", "basis_sums", "cpu:v3"},
    {"router", "flip_one", "active", "cpu:v3", false},
    {"embedding", "stale", "d_table", "cpu:v3"},
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
  ASSERT_FALSE(found.failures().empty()) << SuiteText(found);
  const CaseResult& smallest = found.failures().front().smallest;
  EXPECT_EQ(smallest.output, planted.output);
  EXPECT_LE(ElementsToRead(smallest.c), 24) << CaseText(smallest.c);
  EXPECT_EQ(!smallest.hints.empty(), planted.hinted) << CaseText(smallest.c);
  const std::string row =
      fmt::format("    {}\n    hint: {}\n", ReproLine(smallest),
                  smallest.hints.empty() ? "none" : smallest.hints.front());
  fmt::print("{}", row);

  // The documented line must fail in the same output.
  const std::string page =
      ReadWholeFile(RunfilePath("property_tests/verify/PLANTED_FAULTS.md"));
  const size_t at =
      page.find(fmt::format("REPRO v{} verify run op={} impl={} ",
                            kReproVersion, planted.op, options.impls[0]));
  ASSERT_NE(at, std::string::npos)
      << "PLANTED_FAULTS.md lacks this fault; write there:\n"
      << row;
  const std::string line = page.substr(at, page.find('\n', at) - at);
  const Case c = ParseCase(StripRepro(line));
  const auto implementation = MakeImplementation(c.impl);
  const CaseResult again = CheckCase(c, *implementation);
  EXPECT_EQ(ReproLine(again), line)
      << "PLANTED_FAULTS.md is of another program; write there:\n"
      << row;
}

INSTANTIATE_TEST_SUITE_P(All, PlantedFaults, ::testing::ValuesIn(kPlanted),
                         [](const auto& info) {
                           return std::string(info.param.op) + "_" +
                                  info.param.fault;
                         });

}  // namespace
}  // namespace softmoe::verify
