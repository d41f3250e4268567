// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/suites.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"

namespace softmoe::mutation {
namespace {

// Test files that are programs of their own.
const std::set<std::string>& Programs() {
  static const std::set<std::string> programs = {
      "optimized/device_backend_test",
      "optimized/simulated_exchange_test",
      "optimized/simulated_ranks_test",
      "property_tests/verify/kernels_property_test",
      "trainer/run/simulated_device_test",
  };
  return programs;
}

// For test files that take long, the tests that suffice.
const std::map<std::string, std::string>& Filters() {
  static const std::map<std::string, std::string> filters = {
      {"optimized/simulated_ranks_test",
       "*ToTheBits*:*ReadInBf16*:*TakeTheMemory*:*TakeNoMemory*:"
       "*WhileTheyCompute*"},
      {"property_tests/model_property_test", "*ModelAgainstReference*"},
      {"property_tests/verify/kernels_property_test",
       "*RoundsAtBf16*:SameSource*"},
      {"trainer/run/resume_test", "*GoesOnFromAnOlderCheckpoint*"},
      {"trainer/run/simulated_device_test",
       "*Bf16*:*IsInterrupted*:*ScoresRequests*"},
  };
  return filters;
}

// `words`: "OP", or "OP " and fill=F, bf16, double, edges or "bf16 edges".
Suite Verify(const std::string& name, const std::string& words) {
  const size_t space = words.find(' ');
  const std::string op = words.substr(0, space);
  const std::string rest = space == words.npos ? "" : words.substr(space + 1);
  Suite suite = {
      name, "property_tests/verify/verify", {"run", "op=" + op, "--no-shrink"}};
  std::vector<std::string>& arguments = suite.arguments;
  const bool edges = rest.ends_with("edges");
  if (rest.starts_with("bf16")) {
    arguments.push_back("impl=shim:bf16");
  } else if (rest == "double") {
    arguments.push_back("impl=cpu:double");
  } else {
    arguments.insert(arguments.end(), {"impl=cpu:v3", "impl=shim"});
    if (!rest.empty() && !edges) arguments.push_back(rest);
  }
  if (edges) arguments.push_back("--edges");
  // Rare cases need more draws.
  const std::string cases = edges && op == "embedding"        ? "24"
                            : edges                           ? "12"
                            : !rest.empty() && op == "lapsum" ? "400"
                            : op == "lapsum"                  ? "100"
                            : op == "router"                  ? "200"
                                                              : "60";
  arguments.push_back("--cases=" + cases);
  return suite;
}

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The seed is that of a commit's tests (.bazelrc); a first failure is enough.
constexpr char kRapidCheck[] = "seed=20260120 noshrink=1";

constexpr size_t kKeptOutput = 64 << 10;

constexpr double kSecondsBetweenLooks = 0.05;  // for a request to stop

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Variables that say how this process was started would mislead a test's.
bool IsAboutThisProcess(std::string_view entry) {
  for (const std::string_view prefix :
       {"TEST_", "TESTBRIDGE_", "GTEST_", "XML_", "RUNFILES_", "BUILD_",
        "RC_PARAMS=", "SOFTMOE_MUTANT"}) {
    if (entry.starts_with(prefix)) return true;
  }
  return false;
}

std::vector<std::string> EnvironmentOf(const fs::path& runfiles,
                                       const std::string& id,
                                       const fs::path& folder) {
  std::vector<std::string> result = Environment();
  std::erase_if(result, IsAboutThisProcess);
  result.push_back("TEST_SRCDIR=" + runfiles.parent_path().string());
  result.push_back("TEST_TMPDIR=" + folder.string());
  result.push_back(std::string("RC_PARAMS=") + kRapidCheck);
  if (!id.empty()) result.push_back("SOFTMOE_MUTANT=" + id);
  result.push_back("SOFTMOE_MUTANT_HITS=" + (folder / "hits").string());
  result.push_back("SOFTMOE_MUTANT_REACHED=" + (folder / "reached").string());
  return result;
}

// Options that start a suite in the folder where `bazel test` does, as the
// leader of its own process group.
ProcessOptions OptionsOf(const Suite& suite, const std::string& id,
                         const fs::path& folder) {
  const fs::path& runfiles = suite.runfiles;
  ProcessOptions options;
  options.arguments = {(runfiles / suite.program).string()};
  options.arguments.insert(options.arguments.end(), suite.arguments.begin(),
                           suite.arguments.end());
  options.folder = runfiles;
  options.environment = EnvironmentOf(runfiles, id, folder);
  options.output = ProcessOptions::Output::kFile;
  options.output_file = folder / "output";
  options.own_group = true;
  return options;
}

// Waits for the process, or kills its group; fills in how it ended. (The group
// is its own, so a terminal's Ctrl-C does not reach it.)
void Finish(Process& process, double timeout, const std::function<bool()>& stop,
            SuiteRun& run) {
  const Clock::time_point start = Clock::now();
  bool in_time = false;
  do {
    const double left = std::max(0.0, timeout - SecondsSince(start));
    in_time = process.Wait(std::min(left, kSecondsBetweenLooks));
  } while (!in_time && SecondsSince(start) < timeout && !stop());
  process.Kill();  // or what it may have left running
  run.seconds = SecondsSince(start);
  if (!in_time) {
    run.end = SuiteRun::End::kTimedOut;
  } else if (process.Signal() != 0) {
    run.end = SuiteRun::End::kSignalled;
    run.code = process.Signal();
  } else {
    run.code = process.ExitStatus();
  }
}

// Writes a table of ids, none of them ticked, as switch.h expects it.
void WriteTable(const std::vector<std::string>& ids, const fs::path& file) {
  std::string text;
  for (const std::string& id : ids) text += "- " + id + "\n";
  WriteFileAtomically(file, text);
}

std::set<std::string> Ticked(const fs::path& file) {
  std::ifstream in(file);
  std::set<std::string> ids;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("+ ")) ids.insert(line.substr(2));
  }
  return ids;
}

std::string LastOf(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.size() > kKeptOutput) text.erase(0, text.size() - kKeptOutput);
  return text;
}

}  // namespace

Suite SuiteOf(const std::string& name) {
  constexpr char kVerify[] = "verify ";
  if (name.starts_with(kVerify)) {
    return Verify(name, name.substr(sizeof(kVerify) - 1));
  }
  if (name.ends_with("_asan")) return {name, name};
  if (name.ends_with("_tsan") || name.ends_with("_msan")) {
    // The sanitizers' exit code (kernels/simt/shim/sanitizer_options.cc).
    return {name, name, {}, 43};
  }
  Suite suite = {name, name, {"--gtest_fail_fast"}};
  if (!Programs().contains(name)) {
    const size_t slash = name.rfind('/');
    suite.program = name.substr(0, slash) + "/test";
    suite.arguments.push_back("--file=" + name.substr(slash + 1));
  }
  const auto filter = Filters().find(name);
  if (filter != Filters().end()) {
    suite.arguments.push_back("--gtest_filter=" + filter->second);
  }
  return suite;
}

int SuiteRun::Signal() const {
  if (end == End::kTimedOut) return 0;
  if (end == End::kSignalled) return code;
  return code > 128 ? code - 128 : 0;
}

SuiteRun RunSuite(const Suite& suite, const std::string& id, double timeout,
                  const fs::path& scratch, const std::function<bool()>& stop,
                  const std::vector<std::string>& ids) {
  static std::atomic<int> number = 0;
  // A suite may outlive a driver that was killed, and still count in that
  // driver's folder.
  const fs::path folder = scratch / fmt::format("{}-{}", getpid(), ++number);
  MakeFolder(folder);
  // (A short file would count as a fault that nothing reaches.)
  WriteFileAtomically(folder / "hits",
                      std::string(sizeof(SuiteRun::hits), '\0'));
  if (!ids.empty()) WriteTable(ids, folder / "reached");

  SuiteRun run;
  Process process(OptionsOf(suite, id, folder));
  Finish(process, timeout, stop, run);
  std::ifstream(folder / "hits", std::ios::binary)
      .read(reinterpret_cast<char*>(&run.hits), sizeof(run.hits));
  if (!ids.empty()) run.reached = Ticked(folder / "reached");
  run.output = LastOf(folder / "output");
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return run;
}

std::string SuiteCommand(const Suite& suite, const std::string& id) {
  const fs::path& runfiles = suite.runfiles;
  const fs::path program = runfiles / suite.program;
  std::string command =
      fmt::format("cd {} && SOFTMOE_MUTANT={} TEST_SRCDIR={} RC_PARAMS='{}' {}",
                  runfiles.string(), id, runfiles.parent_path().string(),
                  kRapidCheck, program.string());
  for (const std::string& argument : suite.arguments) {
    command += " '" + argument + "'";
  }
  return command;
}

}  // namespace softmoe::mutation
