// SPDX-License-Identifier: Apache-2.0
//
// suites.h - the suites of tests that must kill faults, each a program, its
// arguments and the exit code of a failed test; and single runs of a suite,
// with at most one mutant switched on.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SUITES_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SUITES_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace softmoe::mutation {

// The failing_exit of a suite in which every nonzero exit is a test's failure.
inline constexpr int kAnyFailingExit = 0;

struct Suite {
  std::string name;
  std::string program;  // path from the root
  std::vector<std::string> arguments = {};
  int failing_exit = 1;
  // The folder that contains `program`, set by the build (build.h).
  std::filesystem::path runfiles = {};
};

// The suite that a fault names, a process that ends at its first failure:
//
//   ROOM/x_test          the tests of that file, of which a few are enough for
//                        some (suites.cc), in the test program of their room
//   ROOM/x_shim_test_V   a simulated CUDA test: V is asan, tsan or msan
//   verify OP            cases of an operation in the verification engine, on
//                        the CPU's kernels and on CUDA source in the simulator
//   verify OP fill=F     the same with this data
//   verify OP bf16       on the CUDA source alone, with bf16 activations
//   verify OP double     on the kernels' bodies alone, at double
//   verify OP edges      the sizes that are never drawn (Operation::edges)
//   verify OP bf16 edges these on the CUDA source alone, with bf16 activations
//
// Does not check that the source exists; faults_test.cc does.
Suite SuiteOf(const std::string& name);

struct SuiteRun {
  enum class End { kExited, kSignalled, kTimedOut };
  End end = End::kExited;
  int code = 0;       // exit status, or the signal
  uint64_t hits = 0;  // how often the mutant's place was evaluated
  double seconds = 0;
  std::set<std::string> reached;  // a subset of the requested ids
  std::string output;             // stdout and stderr; at most the last 64 KiB

  // The signal that ended it, which a script reports as a code above 128; 0 if
  // none did, or if the driver sent it.
  int Signal() const;
};

// Runs `suite` with fault `id` ("" for none) in its runfiles, with a fresh
// folder below `scratch`, and without the environment variables that concern
// this process itself. Kills it, with everything that it started, after
// `timeout` seconds or as soon as `stop` holds; in the latter case the result
// says nothing about the suite. Throws EnvironmentError if it cannot be
// started. `ids` are the faults for which to report whether their places were
// evaluated.
SuiteRun RunSuite(const Suite& suite, const std::string& id, double timeout,
                  const std::filesystem::path& scratch,
                  const std::function<bool()>& stop,
                  const std::vector<std::string>& ids = {});

// Returns the shell command that does the same without this driver.
std::string SuiteCommand(const Suite& suite, const std::string& id);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SUITES_H_
