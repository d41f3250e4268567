// SPDX-License-Identifier: Apache-2.0
//
// Tests the driver with real compilers and processes: counters, exit codes,
// signals and timeouts of a program made for it; then what counts as killed,
// and when a score is void, with made-up runs.
#include "property_tests/mutation/chosen_run.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/message_test_util.h"
#include "property_tests/mutation/build.h"
#include "property_tests/mutation/testing.h"

namespace softmoe::mutation {
namespace {

constexpr char kEquivalentCanary[] = "canary.equivalent";
constexpr char kGrossCanary[] = "canary.gross";

// A fault of the suite "tests".
Fault Of(const std::string& id, const std::string& text = "",
         const std::string& equivalent_because = "",
         const std::string& counts_with = "") {
  return {id, "tests", text, equivalent_because, counts_with};
}

// A program in which faults have every possible effect. If one of its own
// assertions fails, it ends with exit code 1.
constexpr char kFixtureHeader[] = "a/twice.h",
               kFixtureTest[] = "a/fixture_test.cc";
const std::map<std::string, std::string>& FixtureSources() {
  static const std::map<std::string, std::string> sources = {
      {kFixtureHeader, "inline int Twice(int x) { return 2 * x; }\n"},
      {kFixtureTest, R"(
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include "a/twice.h"
int main(int argc, char**) {
  if (argc > 3) std::abort();
  while (argc > 4) ::pause();
  if (argc > 5) return 5;
  if (argc > 1) return 0;

  // Tests that start programs fork, too.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) != 0) return 1;

  int calls = 0;
  ++calls;
  if (calls != 1) return 1;
  if (Twice(3) != 6) return 1;
  // A hole in this test: nothing checks the sum.
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    sum += i;
  }
  return sum >= 0 ? 0 : 1;
}
)"}};
  return sources;
}

// The fault that replaces `pattern.original`, which occurs once, by `instead`.
PlacedFault PlantedInFixture(const std::string& id, const std::string& file,
                             const Pattern& pattern, const std::string& instead,
                             Syntax syntax = Syntax::kExpression) {
  return {id,     file,     FindOnce(FixtureSources().at(file), pattern),
          syntax, "chosen", instead};
}

TEST(Driver, SeesWhatBecomesOfAFault) {
  const PlacedFault in_a_fault = PlantedInFixture(
      "a.in_a_fault", kFixtureHeader, {"return ", "2", ""}, "4");
  const PlacedFault survives = PlantedInFixture("a.survives", kFixtureTest,
                                                {"sum += ", "i", ""}, "i + 1");
  const std::vector<std::pair<PlacedFault, Fate>> faults = {
      {PlantedInFixture("a.crashes", kFixtureTest, {"", "argc > 3", ""},
                        "true"),
       Fate::kCrashed},
      {PlantedInFixture("a.hangs", kFixtureTest, {"", "argc > 4", ""}, "true"),
       Fate::kTimedOut},
      // Ends with an exit code other than that of a failed test.
      {PlantedInFixture("a.lacks_a_file", kFixtureTest, {"", "argc > 5", ""},
                        "true"),
       Fate::kOtherError},
      {PlantedInFixture("a.is_never_reached", kFixtureTest,
                        {"(argc > 1) return ", "0", ""}, "1"),
       Fate::kNotReached},
      {PlantedInFixture("a.in_a_child", kFixtureTest, {"::_exit(", "0", ""},
                        "3"),
       Fate::kFailed},
      {PlantedInFixture("a.statement_left_out", kFixtureTest,
                        {"", "++calls;", ""}, "", Syntax::kStatement),
       Fate::kFailed},
      {PlantedInFixture("a.in_a_header", kFixtureHeader, {"", "2 * x", ""},
                        "3 * x"),
       Fate::kFailed},
      {in_a_fault, Fate::kFailed},
      {survives, Fate::kSurvived},
  };
  const TestProject test(FixtureSources());
  SourceTree tree(test.project(), test.folder() / "tree");
  std::vector<PlacedFault> placed;
  std::map<std::string, Fate> expected;
  ChosenOptions options;
  const auto add = [&](PlacedFault place, const Fault& fault) {
    place.id = fault.id;
    placed.push_back(place);
    options.faults.push_back({fault, Describe(tree, place)});
  };
  for (const auto& [place, fate] : faults) {
    add(place, Of(place.id));
    expected[place.id] = fate;
  }
  // Canaries may share places with other faults.
  add(in_a_fault, Of(kGrossCanary));
  add(survives, Of(kEquivalentCanary, "", "nobody looks at the sum"));

  const Compiler compiler(test.project(), tree, "compiler");
  Build build(test.project(), tree, compiler,
              {.folder = test.folder() / "build"});
  const std::string program = "a/fixture_test";
  ASSERT_TRUE(build.Make(placed, {program}).empty());
  options.suites = {{"tests", program}};
  options.suites[0].runfiles = build.Runfiles();
  options.kill.jobs = 2;
  options.kill.least_timeout = 1;
  options.kill.run = [&](const Suite& suite, const std::string& id,
                         double timeout) {
    const SuiteRun run =
        RunSuite(suite, id, timeout, test.folder(), options.kill.stop);
    if (id == survives.id) {
      EXPECT_EQ(run.hits, 10u);
    }
    if (id == "a.in_a_child") {
      EXPECT_EQ(run.hits, 1u);
    }
    return run;
  };
  const ChosenScore score = Measure(options);
  EXPECT_EQ(score.exit_code(), ExitCode::kFailed) << score.Text();
  ASSERT_EQ(score.results.size(), expected.size());
  for (const ChosenFault& result : score.results) {
    EXPECT_EQ(result.measured.fate, expected.at(result.fault.id))
        << ResultLine(result);
  }
  EXPECT_EQ(score.Total().killed, 4);
}

const Suite kSuite = {"tests", "a/program"};

SuiteRun Ended(SuiteRun::End end, int code, uint64_t hits) {
  SuiteRun run;
  run.end = end;
  run.code = code;
  run.hits = hits;
  return run;
}

TEST(JudgeRun, GoesByHitsAndExitCodes) {
  using End = SuiteRun::End;
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 1, 7)), Fate::kFailed);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 0, 7)), Fate::kSurvived);
  // Neither a failure nor a crash kills what was never evaluated.
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 1, 0)), Fate::kNotReached);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 0, 0)), Fate::kNotReached);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kSignalled, 6, 0)), Fate::kNotReached);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kSignalled, 11, 7)), Fate::kCrashed);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kTimedOut, 0, 7)), Fate::kTimedOut);
  EXPECT_EQ(JudgeRun(kSuite, Ended(End::kExited, 5, 7)), Fate::kOtherError);
  Suite self_check = kSuite;
  self_check.failing_exit = 6;
  EXPECT_EQ(JudgeRun(self_check, Ended(End::kExited, 6, 1)), Fate::kFailed);
  EXPECT_EQ(JudgeRun(self_check, Ended(End::kExited, 1, 1)), Fate::kOtherError);
}

// Exit codes by fault; the id of a run without a fault is "".
using Codes = std::map<std::string, int>;

ChosenOptions OptionsFor(const Codes& codes, std::vector<Fault> faults) {
  faults.push_back(Of(kEquivalentCanary, "same", "it is the same"));
  faults.push_back(Of(kGrossCanary, "gross"));
  ChosenOptions options;
  for (const Fault& fault : faults) {
    options.faults.push_back({fault, {}});
    options.faults.back().measured.fault.id = fault.id;
  }
  options.suites = {kSuite};
  options.kill.jobs = 3;
  options.kill.run = [codes](const Suite&, const std::string& id, double) {
    const auto found = codes.find(id);
    const int code =
        found != codes.end() ? found->second : (id == kGrossCanary ? 1 : 0);
    return Ended(SuiteRun::End::kExited, code, 1);
  };
  return options;
}

ChosenScore MeasureWith(const Codes& codes, const std::vector<Fault>& faults) {
  return Measure(OptionsFor(codes, faults));
}

TEST(Measure, AllKilledIsSuccess) {
  const ChosenScore score =
      MeasureWith({{"a.x", 1}, {"b.y", 1}}, {Of("a.x"), Of("b.y")});
  EXPECT_EQ(score.exit_code(), ExitCode::kDone) << score.Text();
  EXPECT_EQ(score.Total().killed, 2);
  EXPECT_EQ(score.Total().total, 2);  // without the canaries
  EXPECT_TRUE(Says(score.Text(), "2 of 2 killed: 100.0 %"));
}

TEST(Measure, ASurvivorIsReportedWithTheCommandThatShowsIt) {
  const ChosenScore score = MeasureWith({{"a.x", 1}, {"a.hole", 0}},
                                        {Of("a.x"), Of("a.hole", "does harm")});
  EXPECT_EQ(score.exit_code(), ExitCode::kFailed);
  ASSERT_EQ(score.Bad().size(), 1u);
  const std::string text = score.Text();
  EXPECT_TRUE(Says(text,
                   "SURVIVED a.hole by tests: does harm\n  REPRO ./bazelw "
                   "run //:verify -- mutate --mutant a.hole",
                   "1 of 2 killed: 50.0 %"));
}

TEST(Measure, FaultsOfOneKindInOneFunctionCountOnce) {
  const std::vector<Fault> mutants = {
      Of("a.x"),
      Of("a.y", "", "", "a.x"),
      Of("a.z"),
  };
  const ChosenScore all =
      MeasureWith({{"a.x", 1}, {"a.y", 1}, {"a.z", 1}}, mutants);
  EXPECT_EQ(all.Total().total, 2);
  EXPECT_EQ(all.Total().killed, 2);
  EXPECT_TRUE(Says(all.Text(), "3 planted in all"));
  // The pair counts as killed only if both are; a survivor is still reported.
  const ChosenScore one =
      MeasureWith({{"a.x", 1}, {"a.y", 0}, {"a.z", 1}}, mutants);
  EXPECT_EQ(one.Total().killed, 1);
  ASSERT_EQ(one.Bad().size(), 1u);
  EXPECT_EQ(one.exit_code(), ExitCode::kFailed);
}

TEST(Measure, AnArgumentForEquivalenceIsHeldAgainstTheTests) {
  const std::vector<Fault> mutants = {Of("a.same", "", "it is so")};
  const ChosenScore right = MeasureWith({{"a.same", 0}}, mutants);
  EXPECT_EQ(right.exit_code(), ExitCode::kDone);
  EXPECT_EQ(right.Total().argued, 1);
  EXPECT_EQ(right.Total().total, 0);
  const ChosenScore wrong = MeasureWith({{"a.same", 1}}, mutants);
  EXPECT_EQ(wrong.exit_code(), ExitCode::kFailed);
  EXPECT_TRUE(Says(wrong.Text(), "argued to be equivalent, but KILLED"));
}

TEST(Measure, IsVoidIfTestsFailByThemselvesOrACanaryIsMisjudged) {
  const std::vector<Fault> mutants = {Of("a.x")};
  for (const Codes& codes :
       {Codes{{"", 1}, {"a.x", 1}}, Codes{{kEquivalentCanary, 1}, {"a.x", 1}},
        Codes{{kGrossCanary, 0}, {"a.x", 1}}}) {
    const ChosenScore score = MeasureWith(codes, mutants);
    EXPECT_EQ(score.exit_code(), ExitCode::kSelfCheck);
    EXPECT_TRUE(score.results.empty()) << "nothing may be concluded";
    EXPECT_EQ(score.Text().find("VOID: "), 0u);
  }
  ChosenOptions no_canaries = OptionsFor({}, {});
  no_canaries.faults.clear();
  EXPECT_EQ(Measure(no_canaries).exit_code(), ExitCode::kSelfCheck);
}

TEST(Measure, StopsWhenAskedTo) {
  ChosenOptions options = OptionsFor({}, {Of("a.x")});
  options.kill.stop = [] { return true; };
  int runs = 0;
  options.kill.run = [&](const Suite&, const std::string&, double) {
    ++runs;
    return Ended(SuiteRun::End::kExited, 0, 1);
  };
  EXPECT_TRUE(Measure(options).results.empty());
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace softmoe::mutation
