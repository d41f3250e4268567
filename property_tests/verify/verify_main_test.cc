// SPDX-License-Identifier: Apache-2.0
//
// //:verify as a user sees it: output, messages, exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "core/files/atomic_file.h"
#include "core/testing/program_test_util.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

using Output = ProgramOutput;

// Runs //:verify with `arguments`, split as a shell does, in the test's own
// folder; returns stdout and stderr.
Output RunVerify(const std::string& arguments) {
  return RunTestProgram("property_tests/verify/verify", arguments + " 2>&1",
                        ::testing::TempDir());
}

void ExpectSays(const Output& output, int exit_code, const std::string& part) {
  EXPECT_EQ(output.exit_code, exit_code) << output.text;
  EXPECT_NE(output.text.find(part), std::string::npos)
      << "expected: " << part << "\ngot: " << output.text;
}

TEST(Verify, TeachesAndLists) {
  for (const char* part : {"fuzz --seconds", "Exit codes:", "replay"}) {
    ExpectSays(RunVerify("--help"), 0, part);
  }
  for (const char* part : {"lapsum", "near_ties:N", "cpu:v3", "cpu:double",
                           "dtypes: f32, f64, bf16", "stale"}) {
    ExpectSays(RunVerify("list"), 0, part);
  }
  ExpectSays(RunVerify("plan op=lapsum impl=cpu:v3 --cases 7"), 0,
             "lapsum on cpu:v3: 7 cases");
  ExpectSays(RunVerify("explain op=lapsum impl=cpu:v3 rows=3 num_experts=5"), 0,
             "HOW THE BOUNDS ARE DERIVED");
}

TEST(Verify, RunsWhatIsRightAndWritesReports) {
  const Output run = RunVerify(
      "run op=lapsum impl=cpu:v3 --cases 20 --json out.json --junit out.xml "
      "--log out.jsonl");
  ExpectSays(run, 0, "PASS: 20 cases");
  const fs::path folder = ::testing::TempDir();
  EXPECT_NE(ReadWholeFile(folder / "out.json").find("\"verdict\": \"PASS\""),
            std::string::npos);
  EXPECT_NE(ReadWholeFile(folder / "out.xml").find("<testsuite"),
            std::string::npos);
  const std::string log = ReadWholeFile(folder / "out.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 20);
}

TEST(Verify, CasesBesideACaseBeginThere) {
  const std::string run = "run op=lapsum impl=cpu:v3 case=7 ";
  ExpectSays(RunVerify(run), 0, "PASS: 1 case");
  ExpectSays(RunVerify(run + "--cases 3 --log from.jsonl"), 0, "PASS: 3 cases");
  const std::string log = ReadWholeFile(::testing::TempDir() + "from.jsonl");
  for (const char* word : {"case=7\"", "case=8\"", "case=9\""}) {
    EXPECT_NE(log.find(word), std::string::npos) << word << log;
  }
}

TEST(Verify, FuzzFindsAFaultWhoseLineAndBundleFindItAgain) {
  const Output fuzz = RunVerify(
      "fuzz op=lapsum impl=faulty:twice:weights:cpu:v3 --seconds 1 "
      "--bundles bundles");
  ExpectSays(fuzz, 1, "got/expected is 2 = 2");
  const size_t begin = fuzz.text.find("REPRO v2 ");
  ASSERT_NE(begin, std::string::npos) << fuzz.text;
  const std::string line =
      fuzz.text.substr(begin, fuzz.text.find('\n', begin) - begin);
  // Given as one argument, and pasted without its first words.
  ExpectSays(RunVerify("run '" + line + "'"), 1, line);
  ExpectSays(RunVerify("run " + line.substr(line.find("op="))), 1, line);
  ExpectSays(RunVerify("replay bundles/lapsum-1.h5"), 1,
             "got/expected is 2 = 2");
  ExpectSays(RunVerify("replay bundles/lapsum-1.h5 impl=cpu:v3"), 0, "PASS");
  // Later bundles do not replace it.
  const std::string bundle = ::testing::TempDir() + "bundles/lapsum-1.h5";
  const std::string before = ReadWholeFile(bundle);
  ExpectSays(RunVerify("run op=lapsum impl=faulty:sign:weights:cpu:v3 "
                       "--cases 1 --bundles bundles"),
             1, "bundle: ");
  EXPECT_EQ(ReadWholeFile(bundle), before);
}

TEST(Verify, SaysWhenItsOutputDoesNotArriveAndPutsItInNoOtherFile) {
  EXPECT_EQ(RunVerify("list > /dev/full").exit_code, 5);
  EXPECT_EQ(RunVerify("plan > /dev/full").exit_code, 5);  // by fmt::print
  const Output closed = RunTestProgram(
      "property_tests/verify/verify",
      "run op=lapsum impl=cpu:v3 --cases 2 --log closed.jsonl >&- 2>/dev/null",
      ::testing::TempDir());
  EXPECT_EQ(closed.exit_code, 0) << closed.text;
  const std::string log = ReadWholeFile(::testing::TempDir() + "closed.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_EQ(log.find("operation"), std::string::npos) << log;
}

TEST(Verify, GradAcceptsTheReferenceAndFindsAWrongDerivative) {
  const Output right =
      RunVerify("grad op=lapsum --cases 5 --json grad.json --junit grad.xml");
  ExpectSays(right, 0, "PASS: 5 cases");
  ExpectSays(right, 0, "d_scores by duals");
  const fs::path folder = ::testing::TempDir();
  EXPECT_NE(ReadWholeFile(folder / "grad.json").find("\"kinks\""),
            std::string::npos);
  EXPECT_NE(ReadWholeFile(folder / "grad.xml").find("<testsuite"),
            std::string::npos);

  const Output wrong = RunVerify(
      "grad op=lapsum impl=faulty:times_temperature:d_scores:reference_f64 "
      "--seconds 1");
  ExpectSays(wrong, 1, "differences say");
  const size_t begin = wrong.text.find("REPRO v");
  ASSERT_NE(begin, std::string::npos) << wrong.text;
  const std::string line =
      wrong.text.substr(begin, wrong.text.find('\n', begin) - begin);
  EXPECT_NE(line.find(" verify grad op="), std::string::npos) << line;
  ExpectSays(RunVerify("grad '" + line + "'"), 1, line);
  ExpectSays(RunVerify("run '" + line + "'"), 2, "is for `verify grad`");
  ExpectSays(RunVerify("grad op=lapsum impl=cpu:v3"), 2,
             "does not compute in double");
}

TEST(Verify, RefusesWhatCannotBeMeant) {
  for (const char* arguments :
       {"", "walk", "run op=lapsun", "run op=lapsum impl=cpu:v7",
        "run op=lapsum rows=many", "run --cases 0", "fuzz --seconds 0",
        "run 'REPRO v9 verify run op=lapsum'", "explain rows=3",
        "run op=lapsum dtype=f16", "grad --seconds 0", "grad op=lapsun",
        "plan --cases 0", "run --cases 99999999999999999999",
        "fuzz --seconds nan", "grad --seconds nan", "run --timeout 1e300"}) {
    EXPECT_EQ(RunVerify(arguments).exit_code, 2) << arguments;
  }
  // Pairs of options of which one would silently win.
  for (const char* arguments :
       {"run op=lapsum op=lapsum", "run impl=cpu:v3 op=router impl=cpu:v3",
        "fuzz seed=3 seed=0", "grad rows=3 rows=3", "run case=3 case=4",
        "explain op=lapsum op=router",
        "replay none.h5 impl=shim impl=cpu:v3"}) {
    ExpectSays(RunVerify(arguments), 2, "is given twice");
  }
  ExpectSays(RunVerify("run op= impl=cpu:v3"), 2, "'op=' is not KEY=VALUE");
  ExpectSays(RunVerify("run REPRO v2 verify run op=lapsum impl=cpu:v3"), 2,
             "cut short");
  const std::string line = "REPRO v2 verify run op=lapsum seed=0x0 case=1";
  ExpectSays(RunVerify("run '" + line + " # FAIL\n" + line + "'"), 2,
             "two REPRO lines");
  ExpectSays(RunVerify("run '" + line + " # FAIL' '" + line + "'"), 2,
             "two REPRO lines");
  ExpectSays(RunVerify("run op=lapsum rowz=3 --json never.json"), 2,
             "did you mean");
  EXPECT_FALSE(fs::exists(fs::path(::testing::TempDir()) / "never.json"));
  // Detected before anything runs: a failing run would end with 1.
  for (const char* report : {"--json", "--junit", "--log", "--bundles"}) {
    const Output unwritable = RunVerify(
        std::string("run op=lapsum impl=faulty:twice:weights:cpu:v3 ") +
        report + " /dev/null/absent");
    ExpectSays(unwritable, 5, "/dev/null");
    EXPECT_EQ(unwritable.text.find("FAIL"), std::string::npos);
  }
  ExpectSays(RunVerify("replay nowhere.h5"), 5, "nowhere.h5");
  WriteFileAtomically(fs::path(::testing::TempDir()) / "torn.h5", "not HDF5");
  ExpectSays(RunVerify("replay torn.h5"), 2, "torn.h5");
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
    ExpectSays(RunVerify(arguments), 2, part);
  }
  // A value may look like a word or an option.
  ExpectSays(RunVerify("run op=lapsum impl=cpu:v3 --cases 1 --json out=1.json"),
             0, "PASS: 1 case");
  EXPECT_TRUE(fs::exists(fs::path(::testing::TempDir()) / "out=1.json"));
}

TEST(Verify, OperationsAndImplementationsMayBeSeveral) {
  const Output run =
      RunVerify("run op=lapsum op=cast impl=cpu:v3 impl=shim --cases 2");
  ExpectSays(run, 0, "PASS: 4 cases");  // these compute in float
  ExpectSays(run, 0, "not run: cast on shim");
}

TEST(Verify, MutateIsAProgramThatBazelwStarts) {
  ExpectSays(RunVerify("mutate --mutant a.b"), 5,
             "./bazelw run //:verify -- mutate");
}

TEST(Verify, SaysWhatRanWhenItIsStopped) {
  // The signal comes when the first result is in the log, on any machine. (On
  // the CPU, since TSan loses signals that meet a simulated GPU thread.)
  const std::string log = ::testing::TempDir() + "stopped.jsonl";
  std::filesystem::remove(log);
  const Output stopped = RunTestProgram(
      "property_tests/verify/verify",
      "fuzz op=lapsum impl=cpu:v3 --seconds 100000 --log '" + log +
          "' 2>&1 & until [ -s '" + log +
          "' ] || ! kill -0 $!; do sleep 0.1; done; kill -TERM $!; wait $!",
      ::testing::TempDir());
  ExpectSays(stopped, 75, "cases ran and are reported above");
}

}  // namespace
}  // namespace softmoe::verify
