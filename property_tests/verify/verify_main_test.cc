// SPDX-License-Identifier: Apache-2.0
//
// //:verify as a user sees it: output, messages, exit codes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <string>
#include <utility>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

// Runs //:verify with `arguments`, split as a shell does, in the test's own
// folder; returns stdout and stderr.
ProgramResult RunVerify(const std::string& arguments) {
  return RunTestProgram("property_tests/verify/verify", arguments + " 2>&1",
                        ::testing::TempDir());
}

TEST(Verify, TeachesAndLists) {
  EXPECT_TRUE(EndedWith(RunVerify("--help"), 0, "fuzz --seconds",
                        "Exit codes:", "replay"));
  EXPECT_TRUE(EndedWith(RunVerify("list"), 0, "lapsum", "near_ties:N", "cpu:v3",
                        "cpu:double", "dtypes: f32, f64, bf16", "stale"));
  EXPECT_TRUE(EndedWith(RunVerify("plan op=lapsum impl=cpu:v3 --cases 7"), 0,
                        "lapsum on cpu:v3: 7 cases"));
  EXPECT_TRUE(
      EndedWith(RunVerify("explain op=lapsum impl=cpu:v3 rows=3 num_experts=5"),
                0, "HOW THE BOUNDS ARE DERIVED"));
  EXPECT_TRUE(EndedWith(RunVerify("explain op=lapsum rows=3 num_experts=5 "
                                  "impl=faulty:twice:weights:cpu:v3"),
                        1, "FAIL: weights"));
  // At the dtype in which it computes, and for an operation that it lacks.
  EXPECT_TRUE(EndedWith(RunVerify("explain op=gemm impl=shim:bf16 m=5 n=7 k=9 "
                                  "fill=generic"),
                        0, "dtype=bf16", "\nPASS"));
  EXPECT_TRUE(EndedWith(RunVerify("explain op=cast impl=shim"), 4,
                        "Of the bf16 numbers the nearest", "UNSUPPORTED"));
}

TEST(Verify, RunsWhatIsRightAndWritesReports) {
  const ProgramResult run = RunVerify(
      "run op=lapsum impl=cpu:v3 --cases 20 --json out.json --junit out.xml "
      "--log out.jsonl");
  EXPECT_TRUE(EndedWith(run, 0, "PASS: 20 cases"));
  const fs::path folder = ::testing::TempDir();
  EXPECT_TRUE(
      Says(ReadWholeFile(folder / "out.json"), "\"verdict\": \"PASS\""));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "out.xml"), "<testsuite"));
  const std::string log = ReadWholeFile(folder / "out.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 20);
}

TEST(Verify, CasesBesideACaseBeginThere) {
  const std::string run = "run op=lapsum impl=cpu:v3 case=7 ";
  EXPECT_TRUE(EndedWith(RunVerify(run), 0, "PASS: 1 case"));
  EXPECT_TRUE(EndedWith(RunVerify(run + "--cases 3 --log from.jsonl"), 0,
                        "PASS: 3 cases"));
  const std::string log = ReadWholeFile(::testing::TempDir() + "from.jsonl");
  EXPECT_TRUE(Says(log, "case=7\"", "case=8\"", "case=9\""));
}

// Of several processes with one folder, each keeps every bundle.
TEST(Verify, BundlesReplaceNothing) {
  const fs::path folder = FreshFolder("shared_bundles");
  const auto run = [&](const std::string& seed) {
    return RunVerify(
        "run op=lapsum rows=3 num_experts=5 --cases 2 --no-shrink "
        "impl=faulty:sign:d_scores:cpu:v3 impl=faulty:zero:weights:cpu:v3 "
        "impl=faulty:one_nan:weights:cpu:v3 --bundles shared_bundles seed=" +
        seed);
  };
  auto other = std::async(std::launch::async, run, "1");
  std::string said = run("2").output + other.get().output;
  EXPECT_EQ(Count(said, "  bundle: "), std::ssize(FilesIn(folder))) << said;
  // A link to nothing is a name that is taken, too.
  const fs::path last = folder / "lapsum-100.h5";
  for (int number = 1; number < 100; ++number) {
    WritePlain(folder / fmt::format("lapsum-{}.h5", number), "");
  }
  fs::create_symlink("nothing.h5", last);
  EXPECT_TRUE(Says(run("3").output, "lapsum-101.h5"));
  EXPECT_FALSE(fs::exists(last));
}

TEST(Verify, FuzzFindsAFaultWhoseLineAndBundleFindItAgain) {
  const ProgramResult fuzz = RunVerify(
      "fuzz op=lapsum impl=faulty:twice:weights:cpu:v3 --seconds 1 "
      "--bundles bundles");
  EXPECT_TRUE(EndedWith(fuzz, 1, "got/expected is 2 = 2"));
  const size_t begin = fuzz.output.find("REPRO v7 ");
  ASSERT_NE(begin, std::string::npos) << fuzz.output;
  const std::string line =
      fuzz.output.substr(begin, fuzz.output.find('\n', begin) - begin);
  // Given as one argument, and pasted without its first words.
  EXPECT_TRUE(EndedWith(RunVerify("run '" + line + "'"), 1, line));
  EXPECT_TRUE(
      EndedWith(RunVerify("run " + line.substr(line.find("op="))), 1, line));
  EXPECT_TRUE(EndedWith(RunVerify("replay bundles/lapsum-1.h5"), 1,
                        "got/expected is 2 = 2"));
  EXPECT_TRUE(EndedWith(RunVerify("replay bundles/lapsum-1.h5 impl=cpu:v3"), 0,
                        "PASS"));
  // Later bundles do not replace the first.
  const std::string bundle = ::testing::TempDir() + "bundles/lapsum-1.h5";
  const std::string before = ReadWholeFile(bundle);
  EXPECT_TRUE(
      EndedWith(RunVerify("run op=lapsum impl=faulty:sign:weights:cpu:v3 "
                          "--cases 1 --bundles bundles"),
                1, "bundle: "));
  EXPECT_EQ(ReadWholeFile(bundle), before);
}

// Draws do not reach these edges: they have at most 140 rows.
TEST(Verify, FuzzAndVectorsReachTheEdges) {
  const fs::path folder = ::testing::TempDir();
  EXPECT_TRUE(EndedWith(RunVerify("fuzz op=lapsum impl=cpu:v3 --seconds 2 "
                                  "--no-shrink --log edges.jsonl"),
                        0, "PASS: "));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "edges.jsonl"), " rows=1089 "));
  EXPECT_TRUE(EndedWith(RunVerify("export-vectors op=lapsum --edges-first "
                                  "--cases 2 --out edges.h5"),
                        0, "2 cases of 1 operation"));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "edges.h5"), " rows=1089 "));
}

TEST(Verify, ReportsOfWhatIsNoNumberSayWhatItIs) {
  EXPECT_TRUE(
      EndedWith(RunVerify("run op=lapsum impl=faulty:one_nan:weights:cpu:v3 "
                          "fill=generic --cases 1 --no-shrink --json inf.json"),
                1, "FAIL: 1 cases"));
  EXPECT_TRUE(Says(ReadWholeFile(::testing::TempDir() + "inf.json"),
                   "\"utilisation\": \"inf\""));
}

TEST(Verify, SaysWhenItsOutputDoesNotArriveAndPutsItInNoOtherFile) {
  EXPECT_EQ(RunVerify("list > /dev/full").exit_status, 5);
  EXPECT_EQ(RunVerify("plan > /dev/full").exit_status, 5);  // by fmt::print
  const ProgramResult closed = RunTestProgram(
      "property_tests/verify/verify",
      "run op=lapsum impl=cpu:v3 --cases 2 --log closed.jsonl >&- 2>/dev/null",
      ::testing::TempDir());
  EXPECT_TRUE(EndedWith(closed, 0));
  const std::string log = ReadWholeFile(::testing::TempDir() + "closed.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_FALSE(Says(log, "operation"));
}

TEST(Verify, GradAcceptsTheReferenceAndFindsAWrongDerivative) {
  const ProgramResult right =
      RunVerify("grad op=lapsum --cases 5 --json grad.json --junit grad.xml");
  EXPECT_TRUE(EndedWith(right, 0, "PASS: 5 cases"));
  EXPECT_TRUE(EndedWith(right, 0, "d_scores by duals"));
  const fs::path folder = ::testing::TempDir();
  EXPECT_TRUE(Says(ReadWholeFile(folder / "grad.json"), "\"kinks\""));
  EXPECT_TRUE(Says(ReadWholeFile(folder / "grad.xml"), "<testsuite"));

  const ProgramResult wrong = RunVerify(
      "grad op=lapsum impl=faulty:times_temperature:d_scores:reference_f64 "
      "--seconds 1");
  EXPECT_TRUE(EndedWith(wrong, 1, "differences say"));
  const size_t begin = wrong.output.find("REPRO v");
  ASSERT_NE(begin, std::string::npos) << wrong.output;
  const std::string line =
      wrong.output.substr(begin, wrong.output.find('\n', begin) - begin);
  EXPECT_TRUE(Says(line, " verify grad op="));
  EXPECT_TRUE(EndedWith(RunVerify("grad '" + line + "'"), 1, line));
  EXPECT_TRUE(
      EndedWith(RunVerify("run '" + line + "'"), 2, "is for `verify grad`"));
  EXPECT_TRUE(EndedWith(RunVerify("grad op=lapsum impl=cpu:v3"), 2,
                        "only the derivatives of reference_f64"));
}

TEST(Verify, RefusesWhatCannotBeMeant) {
  for (const char* arguments :
       {"", "walk", "run op=lapsun", "run op=lapsum impl=cpu:v7",
        "run op=lapsum rows=many", "run --cases 0", "fuzz --seconds 0",
        "run 'REPRO v9 verify run op=lapsum'", "explain rows=3",
        "run op=lapsum dtype=f16", "grad --seconds 0", "grad op=lapsun",
        "plan --cases 0", "run --cases 99999999999999999999", "run --cases 010",
        "fuzz --seconds nan", "grad --seconds nan", "run --timeout 1e300"}) {
    EXPECT_EQ(RunVerify(arguments).exit_status, 2) << arguments;
  }
  // Pairs of options of which one would silently win.
  for (const char* arguments :
       {"run op=lapsum op=lapsum", "run impl=cpu:v3 op=router impl=cpu:v3",
        "fuzz seed=3 seed=0", "grad rows=3 rows=3", "run case=3 case=4",
        "explain op=lapsum op=router",
        "replay none.h5 impl=shim impl=cpu:v3"}) {
    EXPECT_TRUE(EndedWith(RunVerify(arguments), 2, "is given twice"));
  }
  EXPECT_TRUE(
      EndedWith(RunVerify("run op= impl=cpu:v3"), 2, "'op=' is not KEY=VALUE"));
  EXPECT_TRUE(
      EndedWith(RunVerify("run REPRO v7 verify run op=lapsum impl=cpu:v3"), 2,
                "cut short"));
  EXPECT_TRUE(EndedWith(
      RunVerify("run op=lapsum case=4294967295 --cases 2"), 2,
      "2 cases from case=4294967295: the highest possible case number is"));
  EXPECT_TRUE(EndedWith(RunVerify("run REPRO"), 2, "cut short"));
  const std::string line = "REPRO v7 verify run op=lapsum seed=0x0 case=1";
  // A remark ends with its line, unless the shell has split the line.
  EXPECT_TRUE(EndedWith(RunVerify("run '" + line + " # FAIL' impl=cpu:v7"), 2,
                        "unknown implementation 'cpu:v7'"));
  EXPECT_TRUE(EndedWith(
      RunVerify("run " + line + " impl=cpu:v3 '#' FAIL impl=cpu:v7"), 0));
  EXPECT_TRUE(EndedWith(RunVerify("run --edges --edges-first"), 2,
                        " excludes --edges"));
  EXPECT_TRUE(EndedWith(RunVerify("run '" + line + " # FAIL\n" + line + "'"), 2,
                        "two REPRO lines"));
  EXPECT_TRUE(EndedWith(RunVerify("run '" + line + " # FAIL' '" + line + "'"),
                        2, "two REPRO lines"));
  EXPECT_TRUE(EndedWith(RunVerify("run op=lapsum rowz=3 --json never.json"), 2,
                        "did you mean"));
  EXPECT_FALSE(fs::exists(fs::path(::testing::TempDir()) / "never.json"));
  // Detected before anything runs: a failing run would end with 1.
  for (const char* report : {"--json", "--junit", "--log", "--bundles"}) {
    const ProgramResult unwritable = RunVerify(
        std::string("run op=lapsum impl=faulty:twice:weights:cpu:v3 ") +
        report + " /dev/null/absent");
    EXPECT_TRUE(EndedWith(unwritable, 5, "/dev/null"));
    EXPECT_FALSE(Says(unwritable.output, "FAIL"));
  }
  EXPECT_TRUE(EndedWith(RunVerify("replay nowhere.h5"), 5, "nowhere.h5"));
  WriteFileAtomically(fs::path(::testing::TempDir()) / "torn.h5", "not HDF5");
  EXPECT_TRUE(EndedWith(RunVerify("replay torn.h5"), 2, "torn.h5"));
}

TEST(Verify, NamesACommandThatItDoesNotHave) {
  EXPECT_TRUE(
      EndedWith(RunVerify("fuz op=lapsum"), 2,
                "verify: error: no command 'fuz'; did you mean 'fuzz'?"));
  EXPECT_TRUE(EndedWith(RunVerify("op=lapsum"), 2, "no command 'op=lapsum'",
                        "known are 'list', 'plan', 'run'"));
}

// Refused before anything runs, and under any name of the file.
TEST(Verify, ReportsReplaceNothingThatTheCommandUses) {
  const fs::path folder = ::testing::TempDir();
  ASSERT_EQ(
      RunVerify("export-vectors op=lapsum --cases 2 --out kept.h5").exit_status,
      0);
  const std::string bytes = ReadWholeFile(folder / "kept.h5");
  WriteFileAtomically(folder / "mine.py", bytes);
  const std::pair<const char*, const char*> kRefused[] = {
      {"check-vectors kept.h5 theirs.h5 --json ./kept.h5", "--json "},
      {"check-vectors none.h5 kept.h5 --junit kept.h5", "--junit "},
      {"run op=lapsum impl=serve:./mine.py --json mine.py", "--json "},
      {"run op=lapsum impl=faulty:twice:weights:lib:mine.py --log mine.py",
       "--log "},
      {"run op=lapsum impl=same:serve:mine.py,cpu:v3 --junit ./mine.py",
       "--junit "},
      {"run op=lapsum --json same --junit ./same", "--junit "},
      {"grad op=lapsum --json same --log same", "--log "},
      {"fuzz op=lapsum --junit same --log same", "--log "}};
  for (const auto& [arguments, option] : kRefused) {
    EXPECT_TRUE(EndedWith(RunVerify(arguments), 2, option, "name another file"))
        << arguments;
  }
  EXPECT_FALSE(fs::exists(folder / "same"));
  EXPECT_EQ(ReadWholeFile(folder / "kept.h5"), bytes);
  EXPECT_EQ(ReadWholeFile(folder / "mine.py"), bytes);
  // The bundle of a failure is kept, too.
  ASSERT_EQ(
      RunVerify("run op=lapsum impl=faulty:twice:weights:cpu:v3 --cases 1 "
                "--no-shrink --bundles kept")
          .exit_status,
      1);
  EXPECT_TRUE(EndedWith(
      RunVerify("replay kept/lapsum-1.h5 --json kept/../kept/lapsum-1.h5"), 2,
      "--json ", "name another file"));
  EXPECT_TRUE(EndedWith(RunVerify("replay kept/lapsum-1.h5"), 1));
}

TEST(Verify, RefusesTheOtherSpellingWithTheRightOne) {
  const std::pair<const char*, const char*> kRefused[] = {
      {"run --op=lapsum",
       "run: --op is a key of the case, not an option; "
       "write op=lapsum"},
      {"run op=lapsum --impl cpu:v3", "write impl=cpu:v3"},
      {"fuzz --seed 7 --seconds 1", "fuzz: --seed is a key"},
      {"plan --dtype=f64", "write dtype=f64"},
      {"grad --fill ties", "write fill=ties"},
      {"explain op=lapsum --case=4", "write case=4"},
      {"run op=lapsum --rows=7", "write rows=7"},
      {"run op=lapsum --num-experts 33", "write num_experts=33"},
      {"run op=lapsum --rows", "write rows=VALUE"},
      {"replay some.h5 --impl=shim", "replay: --impl is a key"},
      {"export-vectors --out never.h5 --op lapsum", "write op=lapsum"},
      {"run op=lapsum cases=7",
       "run: cases=7 is an option, not a key of the "
       "case; write --cases 7"},
      {"fuzz seconds=3", "write --seconds 3"},
      {"export-vectors op=lapsum out=never.h5", "write --out never.h5"},
      {"run json=never.json", "write --json never.json"},
  };
  for (const auto& [arguments, part] : kRefused) {
    SCOPED_TRACE(arguments);
    EXPECT_TRUE(EndedWith(RunVerify(arguments), 2, part));
  }
  // A value may look like a word or an option.
  EXPECT_TRUE(EndedWith(
      RunVerify("run op=lapsum impl=cpu:v3 --cases 1 --json out=1.json"), 0,
      "PASS: 1 case"));
  EXPECT_TRUE(fs::exists(fs::path(::testing::TempDir()) / "out=1.json"));
}

TEST(Verify, OperationsAndImplementationsMayBeSeveral) {
  const ProgramResult run =
      RunVerify("run op=lapsum op=cast impl=cpu:v3 impl=shim --cases 2");
  EXPECT_TRUE(EndedWith(run, 0, "PASS: 4 cases"));  // these compute in float
  EXPECT_TRUE(EndedWith(run, 0, "not run: cast on shim"));
}

TEST(Verify, MutateIsAProgramThatBazelwStarts) {
  EXPECT_TRUE(EndedWith(RunVerify("mutate --mutant a.b"), 5,
                        "./bazelw run //:verify -- mutate"));
}

TEST(Verify, AnErrorHidesNothingThatWasFound) {
  // Some of the 20 cases have too few elements for this word.
  const std::string words =
      "run op=lapsum simplify=d_weights:only20 --no-shrink --cases 20 "
      "--json early.json --junit early.xml impl=";
  for (const bool failing : {true, false}) {
    const ProgramResult run =
        RunVerify(words + (failing ? "faulty:twice:weights:" : "") + "cpu:v3");
    const std::string error =
        "simplify: d_weights:only20 asks for an element beyond";
    EXPECT_TRUE(EndedWith(run, failing ? 1 : 2, "ended early: " + error,
                          "verify: error: " + error,
                          failing ? "FAIL: 9 cases" : "ERROR: 9 cases"));
    const fs::path folder = ::testing::TempDir();
    EXPECT_TRUE(Says(ReadWholeFile(folder / "early.json"),
                     failing ? "\"exit_code\": 1," : "\"exit_code\": 2,",
                     error));
    EXPECT_TRUE(
        Says(ReadWholeFile(folder / "early.xml"), "<error type=\"ERROR\""));
  }
}

TEST(Verify, ParametersBesideASizeThatIsDrawn) {
  for (const char* word : {"max_active=8", "mean_active=30", "max_active=200",
                           "max_active=8 --edges", "num_experts=8 --edges"}) {
    EXPECT_TRUE(EndedWith(
        RunVerify("run op=router impl=cpu:v3 --cases 20 " + std::string(word)),
        0, "PASS: 20 cases"));
  }
}

TEST(Verify, SaysWhatRanWhenItIsStopped) {
  // The signal comes when the first result is in the log, on any machine. (On
  // the CPU, since TSan loses signals that meet a simulated GPU thread.)
  const std::string log = ::testing::TempDir() + "stopped.jsonl";
  std::filesystem::remove(log);
  const ProgramResult stopped = RunTestProgram(
      "property_tests/verify/verify",
      "fuzz op=lapsum impl=cpu:v3 --seconds 100000 --json stopped.json --log "
      "'" +
          log + "' 2>&1 & until [ -s '" + log +
          "' ] || ! kill -0 $!; do sleep 0.1; done; kill -TERM $!; wait $!",
      ::testing::TempDir());
  EXPECT_TRUE(
      EndedWith(stopped, 75, "cases ran and are reported above", "STOPPED: "));
  EXPECT_TRUE(Says(ReadWholeFile(::testing::TempDir() + "stopped.json"),
                   "\"exit_code\": 75", "\"stopped\": true"));
}

}  // namespace
}  // namespace softmoe::verify
