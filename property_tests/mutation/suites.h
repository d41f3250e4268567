// SPDX-License-Identifier: Apache-2.0
//
// suites.h - the suites of tests that must kill faults: a program, its
// arguments, the exit code by which it says that it failed; and one run of it,
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

// failing_exit of a suite whose every failure is that of a test.
inline constexpr int kAnyFailingExit = 0;

struct Suite {
  std::string name;
  std::string program;  // path from the root
  std::vector<std::string> arguments = {};
  int failing_exit = 1;
  // The folder below which `program` is: the build says (build.h).
  std::filesystem::path runfiles = {};
};

// The suite that a fault names, one process that ends at its first failure:
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
// Whether there is such a source, a test says (faults_test.cc).
Suite SuiteOf(const std::string& name);

struct SuiteRun {
  enum class End { kExited, kSignalled, kTimedOut };
  End end = End::kExited;
  int code = 0;       // exit status, or the signal
  uint64_t hits = 0;  // how often the mutant's place was evaluated
  double seconds = 0;
  std::set<std::string> reached;  // of the ids that were asked for
  std::string output;             // stdout and stderr; at most the last 64 KiB

  // The signal that ended it, which a script reports by a code above 128; 0 if
  // none did, or if it was the driver's own.
  int Signal() const;
};

// Runs `suite` with fault `id` ("" for none) in its runfiles, with a fresh
// folder below `scratch`, and without the environment variables that concern
// this process itself. After `timeout` seconds it is killed, with everything
// that it started; so it is as soon as `stop` holds, and then what is returned
// says nothing about the suite. Throws EnvironmentError if it cannot be
// started. `ids` are faults of which is asked whether their places were
// evaluated.
SuiteRun RunSuite(const Suite& suite, const std::string& id, double timeout,
                  const std::filesystem::path& scratch,
                  const std::function<bool()>& stop,
                  const std::vector<std::string>& ids = {});

// The shell command with which a person does the same without this driver.
std::string SuiteCommand(const Suite& suite, const std::string& id);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SUITES_H_
