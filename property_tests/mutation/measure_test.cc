// SPDX-License-Identifier: Apache-2.0
//
// Tests the driver with real processes: counters, exit codes, signals and
// timeouts of a program made for it, and a few of the real mutants.
#include "property_tests/mutation/measure.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "property_tests/mutation/mutants.h"
#include "property_tests/mutation/run_suite.h"
#include "property_tests/mutation/score_report.h"

namespace softmoe::mutation {
namespace {

MeasureOptions Options(std::vector<Mutant> mutants, std::vector<Suite> suites) {
  MeasureOptions options;
  options.mutants = std::move(mutants);
  options.suites = std::move(suites);
  options.jobs = 2;
  options.run = [](const Suite& suite, const std::string& id, double timeout) {
    return RunSuite(suite, id, timeout, ::testing::TempDir());
  };
  return options;
}

std::vector<Mutant> Canaries() {
  std::vector<Mutant> canaries;
  for (const Mutant& mutant : AllMutants()) {
    if (mutant.area() == kCanaryArea) canaries.push_back(mutant);
  }
  return canaries;
}

TEST(Driver, SeesWhatBecomesOfAMutant) {
  const std::map<std::string, Outcome> expected = {
      {"fixture.crashes", Outcome::kCrashed},
      {"fixture.hangs", Outcome::kTimedOut},
      {"fixture.lacks_a_file", Outcome::kOtherError},
      {"fixture.is_never_reached", Outcome::kNotCovered},
      {"fixture.does_not_exist", Outcome::kNotCovered},
      {"fixture.in_a_child", Outcome::kKilled},
      {"fixture.in_a_fault", Outcome::kKilled},
      {"fixture.in_a_header", Outcome::kKilled},
      {"fixture.statement_left_out", Outcome::kKilled},
      {"fixture.survives", Outcome::kSurvived},
  };
  const std::string name = "fixture";
  std::vector<Mutant> mutants = Canaries();
  for (const auto& [id, outcome] : expected) mutants.push_back({id, name, ""});
  std::vector<Suite> suites = AllSuites();
  suites.push_back({name, "unit", "property_tests/mutation/fixture"});
  MeasureOptions options = Options(mutants, suites);
  options.min_timeout = 1;
  const Score score = Measure(options);
  EXPECT_EQ(score.exit_code(), ExitCode::kFailed) << ScoreText(score);
  ASSERT_EQ(score.results().size(), expected.size());
  for (const MutantResult& result : score.results()) {
    EXPECT_EQ(result.outcome, expected.at(result.mutant.id))
        << ResultLine(result);
    if (result.mutant.id == "fixture.survives") {
      EXPECT_EQ(result.hits, 10u);
    }
    if (result.mutant.id == "fixture.in_a_child") {
      EXPECT_EQ(result.hits, 1u);
    }
  }
  EXPECT_EQ(score.Total().killed, 4);
}

// The canaries are in the RMSNorm kernel, which is compiled once per ISA level.
TEST(Driver, KillsTheMutantsOfTheComparator) {
  std::vector<Mutant> mutants = Canaries();
  for (const Mutant& mutant : AllMutants()) {
    if (mutant.suite == "core/comparator_test") mutants.push_back(mutant);
  }
  const Score score = Measure(Options(mutants, AllSuites()));
  EXPECT_EQ(score.exit_code(), ExitCode::kDone) << ScoreText(score);
  EXPECT_GE(score.Total().killed, 5);
}

}  // namespace
}  // namespace softmoe::mutation
