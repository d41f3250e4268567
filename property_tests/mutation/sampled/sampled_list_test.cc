// SPDX-License-Identifier: Apache-2.0
//
// Beginning, interrupting, damaging and resuming a list, and drawing its
// faults.
#include "property_tests/mutation/sampled/sampled_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "property_tests/mutation/kill.h"
#include "property_tests/mutation/sampled/draw.h"
#include "property_tests/mutation/sampled/sampled_report.h"
#include "property_tests/mutation/source_tree.h"
#include "property_tests/mutation/testing.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;

SampledRun RunOf(int64_t faults = 4) {
  SampledRun run;
  run.seed = 3;
  run.faults = faults;
  run.sources = std::string(64, 'a');
  run.clang = "clang 14";
  run.compiler = "g++ 12";
  run.places = 100;
  run.units = 7;
  run.left_out = {1, 2, 3, 4};
  run.unseen = {"golden/c.h", "kernels/d.cu"};
  return run;
}

MeasuredFault Fault(int number, Fate fate, const std::string& suite = "") {
  MeasuredFault fault;
  fault.fault = {"s3." + std::to_string(number),
                 number % 2 ? "golden/a.cc" : "trainer/run/b.cc",
                 {10, 12},
                 number % 3 ? Syntax::kExpression : Syntax::kStatement,
                 "constant",
                 "1 + 1"};
  fault.line = 5;
  fault.original = "1;\n2;";
  fault.fate = fate;
  fault.suite = suite;
  fault.suites = 2;
  fault.seconds = 0.5;
  return fault;
}

fs::path NewFile() {
  static int number = 0;
  const fs::path file = fs::path(::testing::TempDir()) /
                        ("list" + std::to_string(++number) + ".jsonl");
  fs::remove(file);
  return file;
}

TEST(SampledList, GoesOnWhereItWas) {
  const fs::path file = NewFile();
  {
    SampledList list(file);
    EXPECT_FALSE(list.run().has_value());
    list.Begin(RunOf());
    MeasuredFault broken = Fault(0, Fate::kDoesNotCompile);
    broken.reason = "no match for 'operator-'";
    list.Add(broken);
    list.Add(Fault(1, Fate::kFailed, "golden/a_test"));
    EXPECT_FALSE(list.IsComplete());
  }
  // A line that was incomplete when the machine stopped.
  std::ofstream(file, std::ios::app) << R"({"id":"s3.2","file":"gol)";
  SampledList list(file);
  ASSERT_EQ(list.faults().size(), 2u);
  EXPECT_EQ(list.Find("s3.2"), nullptr);
  EXPECT_EQ(list.Find("s3.0")->reason, "no match for 'operator-'");
  const MeasuredFault& killed = *list.Find("s3.1");
  EXPECT_EQ(killed.fate, Fate::kFailed);
  EXPECT_EQ(killed.suite, "golden/a_test");
  EXPECT_EQ(killed.fault.syntax, Syntax::kExpression);
  EXPECT_EQ(killed.fault.span.end, 12u);
  EXPECT_EQ(killed.original, "1;\n2;");
  EXPECT_EQ(killed.suites, 2);
  EXPECT_EQ(list.run()->left_out.messages, 4);
  EXPECT_EQ(list.run()->unseen, RunOf().unseen);
  list.Begin(RunOf());
  MeasuredFault crashed = Fault(2, Fate::kCrashed, "x");
  crashed.signal = 11;
  list.Add(crashed);
  list.Add(Fault(3, Fate::kTimedOut, "x"));
  EXPECT_FALSE(list.IsComplete());
  list.Add(Fault(4, Fate::kSurvived));
  EXPECT_TRUE(list.IsComplete());
  EXPECT_EQ(SampledList(file).faults().size(), 5u);
  EXPECT_EQ(SampledList(file).Find("s3.2")->signal, 11);
  EXPECT_EQ(SampledList(file).Find("s3.3")->signal, 0);
  EXPECT_THROW(list.Add(Fault(4, Fate::kFailed)), InternalError);
}

// //property_tests/verify:test reads every file of the repository.
TEST(SampledList, GoesOnAlthoughItIsAmongTheFilesOfATest) {
  const std::map<std::string, std::string> sources = {
      {"golden/a_test.cc", "int main() {}\n"}};
  const TestProject test(sources);
  for (const char* path :
       {"property_tests/mutation/sampled/seed3.jsonl", "golden/log.jsonl"}) {
    const fs::path root = test.folder() / "sources";
    const fs::path file = root / path;
    MakeFolder(file.parent_path());
    Project project = test.project();
    auto& files = project.programs.at("golden/a_test").files;
    for (const char* read : {path, "golden/README.md", "golden/data.csv"}) {
      files[read] = root / read;
    }
    WriteFileAtomically(root / "golden/README.md", "text");
    WriteFileAtomically(root / "golden/data.csv", "1,2\n");
    // As a user gives the path.
    const SampledList list(root / "golden" / ".." / path);
    std::string with_documents;
    const auto begin = [&] {
      const SourceTree tree(project, test.folder() / "tree", list.path());
      SampledRun run = RunOf();
      run.sources = tree.digest();
      with_documents = tree.digest_with_documents();
      SampledList again(list.path());
      again.Begin(run);
      again.Add(Fault(static_cast<int>(again.faults().size()), Fate::kFailed));
    };
    begin();
    const std::string before = with_documents;
    begin();
    EXPECT_EQ(with_documents, before);
    // Documents matter only to what is known without a fault, not to the list.
    WriteFileAtomically(root / "golden/README.md", "another text");
    begin();
    EXPECT_NE(with_documents, before);
    EXPECT_EQ(SampledList(file).faults().size(), 3u);
    // Data matters to the list.
    WriteFileAtomically(root / "golden/data.csv", "1,3\n");
    EXPECT_TRUE(Says(MessageOf(ExitCode::kUsage, begin),
                     "the sources have changed since it was begun"));
  }
}

TEST(SampledList, IsOfOneStateOnly) {
  const fs::path file = NewFile();
  SampledList(file).Begin(RunOf());
  const std::string before = ReadWholeFile(file);
  const auto begin = [&](const std::function<void(SampledRun&)>& change) {
    SampledRun run = RunOf();
    change(run);
    SampledList(file).Begin(run);
  };
  EXPECT_TRUE(Says(MessageOf(ExitCode::kUsage,
                             [&] { begin([](auto& run) { run.seed = 4; }); }),
                   "begun as --sampled 4 --seed 3, not --sampled 4 --seed 4"));
  EXPECT_TRUE(Says(MessageOf(ExitCode::kUsage,
                             [&] { begin([](auto& run) { run.faults = 5; }); }),
                   "not --sampled 5 --seed 3"));
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage,
                     [&] { begin([](auto& run) { run.sources[0] = 'b'; }); }),
           "the sources have changed since it was begun"));
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage,
                     [&] { begin([](auto& run) { run.part = "golden"; }); }),
           "begun of all sources, not with --in golden"));
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kEnvironment,
                     [&] { begin([](auto& run) { run.clang = "clang 15"; }); }),
           "begun with the compiler 'clang 14', which is now 'clang 15'"));
  EXPECT_TRUE(Says(
      MessageOf(ExitCode::kEnvironment,
                [&] { begin([](auto& run) { run.compiler = "g++ 13"; }); }),
      "which is now 'g++ 13'"));
  EXPECT_EQ(ReadWholeFile(file), before);
}

TEST(SampledList, ReadsOlderOnesThatDoNotNameWhatIsUnseen) {
  const fs::path file = NewFile();
  SampledList(file).Begin(RunOf());
  WriteFileAtomically(
      file, Replaced(ReadWholeFile(file),
                     R"(,"unseen":["golden/c.h","kernels/d.cu"])", ""));
  const SampledList list(file);
  EXPECT_EQ(list.run()->left_out.messages, 4);
  EXPECT_TRUE(list.run()->unseen.empty());
  EXPECT_FALSE(Says(SampledReport(list, {}).Text(), "nothing is drawn in"));
}

// A part's draw is a different draw, whatever its seed.
TEST(SampledList, OfAPartIsOfThatPart) {
  const fs::path file = NewFile();
  SampledRun run = RunOf();
  run.part = "kernels/cuda,optimized";
  SampledList(file).Begin(run);
  const SampledList list(file);
  EXPECT_EQ(list.run()->part, run.part);
  list.RequireAskedFor(run);
  SampledRun other = run;
  other.part = "kernels/cuda";
  EXPECT_TRUE(Says(
      MessageOf(ExitCode::kUsage, [&] { list.RequireAskedFor(other); }),
      "begun with --in kernels/cuda,optimized, not with --in kernels/cuda;"));
  EXPECT_TRUE(Says(
      MessageOf(ExitCode::kUsage, [&] { SampledList(file).Begin(RunOf()); }),
      "begun with --in kernels/cuda,optimized, not of all sources"));
  EXPECT_EQ(IdPrefix(RunOf()), "s3");
  const std::string prefix = IdPrefix(run);
  EXPECT_EQ(prefix.size(), std::string("s3-12345678").size()) << prefix;
  EXPECT_TRUE(prefix.starts_with("s3-")) << prefix;
  EXPECT_NE(prefix, IdPrefix(other));
}

// Otherwise its fault would be drawn again and listed twice.
TEST(SampledList, GoesOnAfterALineThatLacksOnlyItsEnd) {
  const fs::path file = NewFile();
  {
    SampledList list(file);
    list.Begin(RunOf());
    list.Add(Fault(1, Fate::kFailed, "golden/a_test"));
    list.Add(Fault(2, Fate::kSurvived));
  }
  fs::resize_file(file, fs::file_size(file) - 1);
  SampledList list(file);
  EXPECT_EQ(list.faults().size(), 1u);
  list.Begin(RunOf());
  EXPECT_EQ(list.faults().size(), 2u);
  EXPECT_NE(list.Find("s3.2"), nullptr);
  list.Add(Fault(3, Fate::kSurvived));
  EXPECT_EQ(SampledList(file).faults().size(), 3u);
}

TEST(SampledList, CountsNothingTwice) {
  const fs::path file = NewFile();
  {
    SampledList list(file);
    list.Begin(RunOf());
    list.Add(Fault(0, Fate::kFailed, "x"));
  }
  const std::string whole = ReadWholeFile(file);
  const std::string second = whole.substr(whole.find('\n') + 1);
  const auto message = [&](const std::string& text) {
    WriteFileAtomically(file, text);
    return MessageOf(ExitCode::kUsage, [&] { SampledList list(file); });
  };
  EXPECT_TRUE(Says(message(whole + second),
                   file.string() + ":3: s3.0 is in the list twice"));
  EXPECT_TRUE(
      Says(message(second), ":1: not a line of a list of sampled faults"));
  EXPECT_TRUE(Says(message(whole + "{\"id\":\"s3.1\"}\n"), ":3: not a line"));
  EXPECT_TRUE(Says(message(whole + "damaged\n"), ":3"));
  std::string other = whole;
  other.replace(other.find("\"format\":1"), 10, "\"format\":2");
  EXPECT_TRUE(Says(message(other), ":1: format 2 is not 1"));
  other = whole;
  other.replace(other.find("KILLED"), 6, "KILLEM");
  EXPECT_TRUE(Says(message(other), "no fault has the outcome 'KILLEM'"));
}

// Ten places, of which those in `broken` have no fault that compiles.
std::vector<Place> Places() {
  std::vector<Place> places;
  for (size_t i = 0; i < 10; ++i) {
    places.push_back({"golden/a.cc",
                      {10 * i, 10 * i + 2},
                      Syntax::kExpression,
                      {{"constant", std::to_string(i)}}});
  }
  return places;
}

std::vector<std::string> Ids(const std::vector<PlacedFault>& faults) {
  std::vector<std::string> ids;
  for (const PlacedFault& fault : faults) ids.push_back(fault.id);
  return ids;
}

class DrawFaultsTest : public ::testing::Test {
 protected:
  std::vector<PlacedFault> Draw(SampledList& list, int64_t wanted) {
    return DrawFaults(
        Places(), wanted, list,
        [&](const std::vector<PlacedFault>& faults) {
          std::vector<std::string> problems;
          for (const PlacedFault& fault : faults) {
            checked_.push_back(fault.id);
            const bool is_bad = fault.id == "s3.1" || fault.id == "s3.4";
            problems.push_back(is_bad ? "no such thing" : "");
          }
          return problems;
        },
        [&](const std::vector<PlacedFault>& faults) {
          return faults.back().id != "s3.2";
        },
        [&](const PlacedFault& fault) {
          MeasuredFault sampled;
          sampled.fault = fault;
          return sampled;
        });
  }

  std::vector<std::string> checked_;
};

TEST_F(DrawFaultsTest, DrawsOthersForThoseThatDoNotCompile) {
  const fs::path file = NewFile();
  const std::vector<std::string> expected = {"s3.0", "s3.3", "s3.5", "s3.6"};
  {
    SampledList list(file);
    list.Begin(RunOf());
    EXPECT_EQ(Ids(Draw(list, 4)), expected);
    EXPECT_EQ(list.faults().size(), 3u);
    EXPECT_EQ(list.Find("s3.1")->reason, "no such thing");
    EXPECT_TRUE(Says(list.Find("s3.2")->reason, "overlaps"));
  }
  // Known results are neither checked nor written again.
  checked_.clear();
  SampledList again(file);
  again.Begin(RunOf());
  EXPECT_EQ(Ids(Draw(again, 4)), expected);
  EXPECT_EQ(again.faults().size(), 3u);
  for (const char* id : {"s3.1", "s3.2", "s3.4"}) {
    EXPECT_EQ(std::ranges::count(checked_, id), 0) << id;
  }
  // What broke the build is replaced by the next one.
  MeasuredFault broken = Fault(3, Fate::kBreaksTheBuild);
  broken.fault = Draw(again, 4)[1];
  again.Add(broken);
  EXPECT_EQ(Ids(Draw(again, 4)),
            (std::vector<std::string>{"s3.0", "s3.5", "s3.6", "s3.7"}));
}

TEST_F(DrawFaultsTest, NamesTheFaultsOfAPartAsThose) {
  SampledList list(NewFile());
  SampledRun run = RunOf();
  run.part = "golden";
  list.Begin(run);
  const std::string prefix = IdPrefix(run);
  EXPECT_EQ(Ids(Draw(list, 2)),
            (std::vector<std::string>{prefix + ".0", prefix + ".1"}));
}

TEST_F(DrawFaultsTest, RefusesWhatCannotBeDrawn) {
  SampledList list(NewFile());
  list.Begin(RunOf());
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage, [&] { Draw(list, 8); }),
           "--sampled 8: of 10 places only 7 have a fault that compiles"));
}

TEST_F(DrawFaultsTest, RefusesAListOfOtherFaults) {
  SampledList list(NewFile());
  list.Begin(RunOf());
  list.Add(Fault(0, Fate::kFailed, "x"));  // another place than is drawn
  EXPECT_TRUE(Says(MessageOf(ExitCode::kUsage, [&] { Draw(list, 4); }),
                   "s3.0 is not the fault that this seed draws"));
}

TEST(SuitesFor, AreThoseThatReachItQuickestFirst) {
  const std::vector<Suite> suites = {
      {"slow", ""}, {"quick", ""}, {"elsewhere", ""}, {"failing", ""}};
  const std::map<std::string, CleanRun> clean = {
      {"slow", {true, 9, {"s3.0"}}},
      {"quick", {true, 1, {"s3.0", "s3.1"}}},
      {"elsewhere", {true, 1, {"s3.1"}}},
      {"failing", {false, 1, {"s3.0"}}}};
  std::vector<std::string> names;
  for (const Suite* suite : SuitesFor("s3.0", suites, clean)) {
    names.push_back(suite->name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"quick", "slow"}));
}

TEST(TryToKill, EndsWithTheFirstThatNotices) {
  const std::vector<Suite> suites = {{"a", ""}, {"b", ""}, {"c", ""}};
  const std::vector<const Suite*> all = {&suites[0], &suites[1], &suites[2]};
  const std::map<std::string, CleanRun> clean = {
      {"a", {true, 1, {}}}, {"b", {true, 7, {}}}, {"c", {true, 8, {}}}};
  std::vector<double> timeouts;
  SuiteRun of_b;
  of_b.hits = 3;
  KillOptions options;
  options.run = [&](const Suite& suite, const std::string&, double timeout) {
    timeouts.push_back(timeout);
    SuiteRun passed;
    passed.hits = 3;
    return suite.name == "b" ? of_b : passed;
  };
  const auto fate = [&] {
    return TryToKill(Fault(0, Fate::kNotReached), all, clean, options);
  };
  of_b.code = 1;
  EXPECT_EQ(fate()->fate, Fate::kFailed);
  EXPECT_EQ(fate()->suite, "b");
  EXPECT_EQ(fate()->suites, 4);  // two more than it had
  EXPECT_EQ(timeouts[0], 30);
  EXPECT_EQ(timeouts[1], 70);  // ten times the duration without a fault
  EXPECT_EQ(fate()->signal, 0);
  of_b.code = 139;  // as a script reports a signal
  EXPECT_EQ(fate()->fate, Fate::kCrashed);
  EXPECT_EQ(fate()->signal, 11);
  of_b.end = SuiteRun::End::kSignalled;
  of_b.code = 6;
  EXPECT_EQ(fate()->fate, Fate::kCrashed);
  EXPECT_EQ(fate()->signal, 6);
  of_b.end = SuiteRun::End::kTimedOut;
  EXPECT_EQ(fate()->fate, Fate::kTimedOut);
  of_b.hits = 0;  // for another reason
  EXPECT_EQ(fate()->fate, Fate::kSurvived);
  EXPECT_EQ(TryToKill(Fault(0, Fate::kSurvived), {}, clean, options)->fate,
            Fate::kNotReached);
  options.stop = [] { return true; };
  EXPECT_FALSE(fate().has_value());
}

// If memory is short, the system ends a test by SIGKILL: no test noticed a
// fault.
class ShortOfMemoryTest : public ::testing::Test {
 protected:
  ShortOfMemoryTest() { options_.jobs = 2; }

  // The next runs end like `runs`, one each; after that a test passes.
  void End(std::vector<SuiteRun> runs) {
    options_.run = [this, runs](const Suite&, const std::string&, double) {
      if (count_ < runs.size()) return runs[count_++];
      ++count_;
      SuiteRun passed;
      passed.hits = 1;
      return passed;
    };
    count_ = 0;
  }
  MeasuredFault Try() {
    return *TryToKill(Fault(0, Fate::kNotReached), {&suite_},
                      {{"a", {true, 1, {}}}}, options_);
  }
  bool PassesWithoutAFault() {
    bool passed = false;
    RunWithoutFaults({&suite_}, options_,
                     [&](const Suite&, const CleanRun& run,
                         const std::string&) { passed = run.passed; });
    return passed;
  }

  static SuiteRun Killed(SuiteRun::End end, int code, uint64_t hits) {
    SuiteRun run;
    run.end = end;
    run.code = code;
    run.hits = hits;
    return run;
  }

  const Suite suite_ = {"a", ""};
  const std::vector<SuiteRun> ways_ = {
      Killed(SuiteRun::End::kSignalled, SIGKILL, 1),
      Killed(SuiteRun::End::kSignalled, SIGKILL, 0),
      Killed(SuiteRun::End::kExited, 128 + SIGKILL, 1)};  // of a script
  KillOptions options_;
  size_t count_ = 0;  // runs
};

TEST_F(ShortOfMemoryTest, LooksAgain) {
  for (const SuiteRun& way : ways_) {
    End({way});
    const MeasuredFault fault = Try();
    EXPECT_EQ(fault.fate, Fate::kSurvived);
    EXPECT_EQ(fault.signal, 0);
    EXPECT_EQ(count_, 2u);
    End({way});
    EXPECT_TRUE(PassesWithoutAFault());
  }
}

TEST_F(ShortOfMemoryTest, SaysSoTheSecondTime) {
  for (const SuiteRun& way : ways_) {
    End({way, way});
    EXPECT_TRUE(
        Says(MessageOf(ExitCode::kEnvironment, [&] { Try(); }),
             "a with s3.0 was killed by SIGKILL twice", "memory is short",
             "nothing was recorded for it: start again, with fewer --jobs"));
    EXPECT_EQ(count_, 2u);
    End({way, way});
    EXPECT_TRUE(
        Says(MessageOf(ExitCode::kEnvironment, [&] { PassesWithoutAFault(); }),
             "a without a fault was killed by SIGKILL twice"));
  }
  // Ctrl-C is no lack of memory.
  End({ways_[0], ways_[0]});
  options_.stop = [&] { return count_ > 0; };
  EXPECT_FALSE(TryToKill(Fault(0, Fate::kNotReached), {&suite_},
                         {{"a", {true, 1, {}}}}, options_)
                   .has_value());
  EXPECT_EQ(count_, 1u);
}

// Otherwise a list with a fault that takes all memory could never be completed.
TEST_F(ShortOfMemoryTest, BlamesTheFaultOfATestThatRanAlone) {
  options_.jobs = 1;
  End({ways_[0], ways_[0]});
  const MeasuredFault fault = Try();
  EXPECT_EQ(fault.fate, Fate::kCrashed);
  EXPECT_EQ(fault.signal, SIGKILL);
  End({ways_[0], ways_[0]});
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kEnvironment, [&] { PassesWithoutAFault(); }),
           "killed by SIGKILL twice"));
}

TEST_F(ShortOfMemoryTest, TriesAloneWhatIsLeft) {
  // The attempts, each with its number of jobs; the first two are killed once.
  std::vector<std::pair<size_t, int>> tried;
  std::mutex mutex;
  ForAllAndThenAlone(4, options_, [&](size_t i, const KillOptions& options) {
    const std::lock_guard lock(mutex);
    tried.emplace_back(i, options.jobs);
    if (i < 2 && options.jobs > 1) throw ShortOfMemory("killed");
  });
  ASSERT_EQ(tried.size(), 6u);
  std::ranges::sort(tried.begin(), tried.begin() + 4);
  std::ranges::sort(tried.begin() + 4, tried.end());
  EXPECT_EQ(tried, (std::vector<std::pair<size_t, int>>{
                       {0, 2}, {1, 2}, {2, 2}, {3, 2}, {0, 1}, {1, 1}}));
  // Other errors are thrown.
  EXPECT_THROW(ForAllAndThenAlone(2, options_,
                                  [](size_t, const KillOptions&) {
                                    throw EnvironmentError("no such program");
                                  }),
               EnvironmentError);
}

std::map<std::string, Equivalent> Argued(const std::string& id,
                                         const std::string& read_by) {
  return {{id, {"equivalent.toml:1:1", "no input shows it", read_by}}};
}

// `killed` faults that are killed, and `alive` that are not.
SampledList ListOf(int killed, int alive) {
  SampledList list(NewFile());
  list.Begin(RunOf(killed + alive));
  for (int i = 0; i < killed; ++i) list.Add(Fault(i, Fate::kFailed, "x"));
  for (int i = 0; i < alive; ++i) {
    list.Add(Fault(killed + i, i % 2 ? Fate::kNotReached : Fate::kSurvived));
  }
  return SampledList(list.path());
}

TEST(SampledReport, SaysWhetherTheTestsReachWhatTheyMust) {
  const auto code = [](int killed, int alive) {
    return SampledReport(ListOf(killed, alive), {}).exit_code();
  };
  EXPECT_EQ(code(290, 10), ExitCode::kDone);
  EXPECT_EQ(code(280, 20), ExitCode::kFailed);
  EXPECT_EQ(code(12, 0), ExitCode::kInconclusive);  // [73.5, 100]
  SampledList unfinished(NewFile());
  unfinished.Begin(RunOf());
  const SampledReport report(unfinished, {});
  EXPECT_EQ(report.exit_code(), ExitCode::kInconclusive);
  EXPECT_TRUE(Says(report.Text(), "NOT COMPLETE"));
}

TEST(SampledReport, CountsByPackageAndNamesWhatIsAlive) {
  SampledList list(NewFile());
  list.Begin(RunOf(6));
  list.Add(Fault(0, Fate::kDoesNotCompile));
  list.Add(Fault(1, Fate::kFailed, "x"));
  list.Add(Fault(2, Fate::kCrashed, "x"));
  list.Add(Fault(3, Fate::kTimedOut, "x"));
  list.Add(Fault(4, Fate::kSurvived));
  list.Add(Fault(5, Fate::kNotReached));
  MeasuredFault equal = Fault(6, Fate::kSurvived);
  equal.equal_objects = true;
  list.Add(equal);
  const SampledReport report(list, {});
  const Score& score = report.score();
  EXPECT_EQ(score.total, 5);
  EXPECT_EQ(score.killed, 3);
  EXPECT_EQ(score.fates.at(Fate::kFailed), 1);
  EXPECT_EQ(score.fates.at(Fate::kCrashed), 1);
  EXPECT_EQ(score.fates.at(Fate::kTimedOut), 1);
  EXPECT_EQ(score.fates.at(Fate::kSurvived), 1);
  EXPECT_EQ(score.fates.at(Fate::kNotReached), 1);
  EXPECT_EQ(score.equal_objects, 1);
  const std::string text = report.Text();
  const char* left_out =
      "1 in macros, 2 that the compiler must know, 3 declarations, 4 in "
      "messages";
  EXPECT_TRUE(
      Says(text, left_out,
           "nothing is drawn in 2 sources that clang has not seen: golden/c.h, "
           "kernels/d.cu\n",
           "1 that do not compile, 0 that broke the build", "trainer/run",
           "SURVIVED s3.4 trainer/run/b.cc:5", "1; 2;\n    -> 1 + 1",
           "3 of 5 killed: 60.0 % [14.7, 94.7]; 1 equivalent by equal object"));
  EXPECT_FALSE(Says(text, "s3.6 "));
}

TEST(SampledReport, CountsAnArgumentOnceASecondPersonHasReadIt) {
  const SampledList list = ListOf(99, 1);
  EXPECT_EQ(SampledReport(list, Argued("s3.99", "")).score().argued, 0);
  const SampledReport report(list, Argued("s3.99", "somebody"));
  EXPECT_EQ(report.score().argued, 1);
  EXPECT_EQ(report.score().total, 99);
  EXPECT_TRUE(
      Says(report.Text(), "equivalent: no input shows it (read by somebody)"));
  // The fault has another seed.
  EXPECT_EQ(SampledReport(list, Argued("s31.99", "x")).score().argued, 0);
}

// An argument about a fault in all sources does not apply to one in a part,
// although both are the same draw of the same seed.
TEST(SampledReport, SaysThatItIsOfAPart) {
  SampledRun run = RunOf(2);
  run.part = "kernels/cuda,optimized";
  SampledList list(NewFile());
  list.Begin(run);
  for (int i = 0; i < 2; ++i) {
    MeasuredFault fault =
        Fault(i, i == 0 ? Fate::kFailed : Fate::kSurvived, "x");
    fault.fault.id = IdPrefix(run) + "." + std::to_string(i);
    list.Add(fault);
  }
  const SampledReport report(list, Argued("s3.1", "somebody"));
  EXPECT_EQ(report.score().argued, 0);
  EXPECT_EQ(report.score().total, 2);
  EXPECT_TRUE(Says(report.Text(),
                   "seed 3, only in kernels/cuda,optimized: 2 faults",
                   "1 of 2 killed in kernels/cuda,optimized alone: 50.0 %"));
}

TEST(SampledReport, RefusesArgumentsThatDoNotHold) {
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage,
                     [] { SampledReport(ListOf(2, 0), Argued("s3.1", "x")); }),
           "s3.1 is argued to be equivalent, but KILLED"));
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage,
                     [] { SampledReport(ListOf(2, 0), Argued("s3.7", "x")); }),
           "no fault s3.7"));
  EXPECT_TRUE(
      Says(MessageOf(ExitCode::kUsage,
                     [] { SampledReport(ListOf(4, 1), Argued("s3.4", "x")); }),
           "1 of 5 faults are argued to be equivalent, more than 10 %"));
}

TEST(Equivalents, AreReadWithTheirPlaces) {
  const fs::path file = fs::path(::testing::TempDir()) / "equivalent.toml";
  const auto read = [&](const std::string& text) {
    WriteFileAtomically(file, text);
    return ReadEquivalents(file);
  };
  const std::string one =
      "[[equivalent]]\nid = \"s1.2\"\nbecause = \"both are zero there\"\n";
  EXPECT_EQ(read("").size(), 0u);
  EXPECT_EQ(read(one).at("s1.2").because, "both are zero there");
  EXPECT_EQ(read(one).at("s1.2").read_by, "");
  EXPECT_EQ(read(one + "read_by = \"a\"\n").at("s1.2").read_by, "a");
  const auto message = [&](const std::string& text) {
    return MessageOf(ExitCode::kUsage, [&] { read(text); });
  };
  EXPECT_TRUE(Says(message(one + one), "s1.2 is argued already"));
  EXPECT_TRUE(Says(message("[[equivalent]]\nid = \"s1.2\"\nbecause = \"so\"\n"),
                   "says too little"));
  EXPECT_TRUE(Says(message("[[equivalent]]\nid = \"s1.2\"\n"), "because"));
  EXPECT_TRUE(Says(message(one + "reason = \"\"\n"), "reason"));
}

}  // namespace
}  // namespace softmoe::mutation
