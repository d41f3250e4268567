// SPDX-License-Identifier: Apache-2.0
//
// What counts as killed, and when a score is void, with made-up runs.
#include "property_tests/mutation/score.h"

#include <gtest/gtest.h>

#include "property_tests/mutation/measure.h"
#include "property_tests/mutation/score_report.h"

namespace softmoe::mutation {
namespace {

const Suite kSuite = {"tests", "unit", "a/program"};

SuiteRun Ended(SuiteRun::End end, int code, uint64_t hits) {
  SuiteRun run;
  run.end = end;
  run.code = code;
  run.hits = hits;
  return run;
}

TEST(JudgeRun, GoesByHitsAndExitCodes) {
  using End = SuiteRun::End;
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 1, 7)), Outcome::kKilled);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 0, 7)), Outcome::kSurvived);
  // Neither a failure nor a crash kills a mutant that was never evaluated.
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 1, 0)), Outcome::kNotCovered);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 0, 0)), Outcome::kNotCovered);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kSignalled, 6, 0)),
            Outcome::kNotCovered);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kSignalled, 11, 7)), Outcome::kCrashed);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kTimedOut, 0, 7)), Outcome::kTimedOut);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 5, 7)), Outcome::kOtherError);
  Suite self_check = kSuite;
  self_check.failing_exit = 6;
  EXPECT_EQ(JudgeRun(self_check, Ended(End::kExited, 6, 1)), Outcome::kKilled);
  EXPECT_EQ(JudgeRun(self_check, Ended(End::kExited, 1, 1)),
            Outcome::kOtherError);
}

// Exit codes by mutant; the id of a run without a mutant is "".
using Codes = std::map<std::string, int>;

Score MeasureWith(const Codes& codes, std::vector<Mutant> mutants) {
  mutants.push_back({kEquivalentCanary, "tests", "same", "it is the same"});
  mutants.push_back({kGrossCanary, "tests", "gross"});
  MeasureOptions options;
  options.mutants = std::move(mutants);
  options.suites = {kSuite};
  options.jobs = 3;
  options.run = [&](const Suite&, const std::string& id, double) {
    const auto found = codes.find(id);
    const int code =
        found != codes.end() ? found->second : (id == kGrossCanary ? 1 : 0);
    return Ended(SuiteRun::End::kExited, code, 1);
  };
  return Measure(options);
}

TEST(Measure, AllKilledIsSuccess) {
  const Score score = MeasureWith({{"a.x", 1}, {"b.y", 1}},
                                  {{"a.x", "tests", ""}, {"b.y", "tests", ""}});
  EXPECT_EQ(score.exit_code(), ExitCode::kDone) << ScoreText(score);
  EXPECT_EQ(score.Total().killed, 2);
  EXPECT_EQ(score.Total().total, 2);  // without the canaries
  EXPECT_EQ(score.Of("a", "unit").total, 1);
  EXPECT_EQ(score.Of("a", "model").total, 0);
  EXPECT_NE(ScoreText(score).find("100.0 % (2 of 2 killed"), std::string::npos);
}

TEST(Measure, ASurvivorIsReportedWithTheCommandThatShowsIt) {
  const Score score =
      MeasureWith({{"a.x", 1}, {"a.hole", 0}},
                  {{"a.x", "tests", ""}, {"a.hole", "tests", "does harm"}});
  EXPECT_EQ(score.exit_code(), ExitCode::kFailed);
  ASSERT_EQ(score.Bad().size(), 1u);
  const std::string text = ScoreText(score);
  EXPECT_NE(text.find("SURVIVED a.hole by tests: does harm\n  REPRO ./bazelw "
                      "run //:verify -- mutate --mutant a.hole"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("50.0 % (1 of 2 killed"), std::string::npos) << text;
  const auto json = ScoreJson(score);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["mutants"][1]["outcome"], "SURVIVED");
}

TEST(Measure, FaultsOfOneKindInOneFunctionCountOnce) {
  const std::vector<Mutant> mutants = {
      {"a.x", "tests", ""},
      {"a.y", "tests", "", "", "a.x"},
      {"a.z", "tests", ""},
  };
  const Score all = MeasureWith({{"a.x", 1}, {"a.y", 1}, {"a.z", 1}}, mutants);
  EXPECT_EQ(all.Total().total, 2);
  EXPECT_EQ(all.Total().killed, 2);
  EXPECT_NE(ScoreText(all).find("3 planted in all"), std::string::npos);
  // They count only if both are killed; the other one is still reported.
  const Score one = MeasureWith({{"a.x", 1}, {"a.y", 0}, {"a.z", 1}}, mutants);
  EXPECT_EQ(one.Total().killed, 1);
  ASSERT_EQ(one.Bad().size(), 1u);
  EXPECT_EQ(one.exit_code(), ExitCode::kFailed);
}

TEST(Measure, AnArgumentForEquivalenceIsHeldAgainstTheTests) {
  const std::vector<Mutant> mutants = {{"a.same", "tests", "", "it is so"}};
  const Score right = MeasureWith({{"a.same", 0}}, mutants);
  EXPECT_EQ(right.exit_code(), ExitCode::kDone);
  EXPECT_EQ(right.Argued(), 1);
  EXPECT_EQ(right.Total().total, 0);
  const Score wrong = MeasureWith({{"a.same", 1}}, mutants);
  EXPECT_EQ(wrong.exit_code(), ExitCode::kFailed);
  EXPECT_NE(ScoreText(wrong).find("argued to be equivalent, but KILLED"),
            std::string::npos);
}

TEST(Measure, IsVoidIfTestsFailByThemselvesOrACanaryIsMisjudged) {
  const std::vector<Mutant> mutants = {{"a.x", "tests", ""}};
  for (const Codes& codes :
       {Codes{{"", 1}, {"a.x", 1}}, Codes{{kEquivalentCanary, 1}, {"a.x", 1}},
        Codes{{kGrossCanary, 0}, {"a.x", 1}}}) {
    const Score score = MeasureWith(codes, mutants);
    EXPECT_EQ(score.exit_code(), ExitCode::kSelfCheck);
    EXPECT_TRUE(score.results().empty()) << "nothing may be concluded";
    EXPECT_EQ(ScoreText(score).find("VOID: "), 0u);
  }
  MeasureOptions no_canaries;
  no_canaries.run = [](const Suite&, const std::string&, double) {
    return SuiteRun();
  };
  EXPECT_EQ(Measure(no_canaries).exit_code(), ExitCode::kSelfCheck);
}

TEST(Measure, StopsWhenAskedTo) {
  MeasureOptions options;
  options.mutants = {{"a.x", "tests", ""}};
  options.suites = {kSuite};
  int runs = 0;
  options.run = [&](const Suite&, const std::string&, double) {
    ++runs;
    return Ended(SuiteRun::End::kExited, 0, 1);
  };
  options.stop = [] { return true; };
  EXPECT_TRUE(Measure(options).results().empty());
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace softmoe::mutation
