// SPDX-License-Identifier: Apache-2.0
//
// No program that is built for use contains a trace of a mutant: neither a
// symbol, nor the name of a variable or of a mutant. Nor does a program that
// trains contain the simulated device, on which its numbers would be worthless.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "property_tests/mutation/build.h"
#include "property_tests/mutation/fault_table.h"
#include "property_tests/mutation/testing.h"

namespace softmoe::mutation {
namespace {

// The words in a program's string literals that consist of letters of mutants'
// names.
std::set<std::string> WordsIn(const std::string& bytes) {
  std::set<std::string> words;
  size_t begin = 0;
  for (size_t i = 0; i <= bytes.size(); ++i) {
    const char c = i < bytes.size() ? bytes[i] : '\0';
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
        c == '.') {
      continue;
    }
    if (i - begin >= 8) words.insert(bytes.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

std::vector<std::string> TracesIn(const std::filesystem::path& program,
                                  const std::vector<Fault>& faults) {
  const std::string bytes = ReadWholeFile(program);
  std::vector<std::string> traces;
  // The environment variable, and the namespace as the linker sees it.
  for (const char* text : {"SOFTMOE_MUTANT", "7softmoe6mutant"}) {
    if (bytes.find(text) != std::string::npos) traces.push_back(text);
  }
  const std::set<std::string> words = WordsIn(bytes);
  for (const Fault& fault : faults) {
    if (words.contains(fault.id)) traces.push_back(fault.id);
  }
  return traces;
}

constexpr const char* kOfExperiments[] = {
    "trainer/tokens/bench", "trainer/evaluation/evaluate", "golden/golden",
    "experiments/grid",     "trainer/tokens/prepare_data", "trainer/run/train"};
constexpr char kVerify[] = "property_tests/verify/verify";

TEST(ReleasedPrograms, HaveNoTraceOfAMutant) {
  std::vector<std::string> programs(std::begin(kOfExperiments),
                                    std::end(kOfExperiments));
  programs.push_back(kVerify);
#ifdef SOFTMOE_HAS_CUDA
  programs.push_back("property_tests/gpu/gpu_check");
#endif
  for (const std::string& program : programs) {
    const std::filesystem::path path = RunfilePath(program);
    EXPECT_GT(std::filesystem::file_size(path), 100'000u) << program;
    const std::vector<std::string> traces = TracesIn(path, AllFaults());
    EXPECT_TRUE(traces.empty()) << program << ": " << traces.front();
  }
}

// The namespaces of the simulated device's kernels and model, as the linker
// sees them.
bool HasTheSimulatedDevice(const std::string& program) {
  const std::string bytes = ReadWholeFile(RunfilePath(program));
  return bytes.find("8isa_shim") != std::string::npos ||
         bytes.find("17backend_simulated") != std::string::npos;
}

TEST(ReleasedPrograms, HaveNoSimulatedDevice) {
  for (const char* program : kOfExperiments) {
    EXPECT_FALSE(HasTheSimulatedDevice(program)) << program;
  }
  // The search finds the kernels where they are what is verified.
  EXPECT_TRUE(HasTheSimulatedDevice(kVerify));
}

// The search finds traces where they exist.
TEST(ReleasedPrograms, TheSearchFindsMutants) {
  const TestProject test = FixtureProject();
  SourceTree tree(test.project(), test.folder() / "tree");
  const Compiler compiler(test.project(), tree, "compiler");
  Build build(test.project(), tree, compiler,
              {.folder = test.folder() / "build"});
  const std::vector<Fault> faults =
      ReadFaults(RunfilePath("property_tests/mutation/fixture.toml"));
  const std::string program = "property_tests/mutation/fixture_main";
  ASSERT_TRUE(
      build.Make(PlaceFaults(faults, tree.Reader()), {program}).empty());
  EXPECT_EQ(TracesIn(build.Runfiles() / program, faults).size(),
            2 + faults.size());
}

}  // namespace
}  // namespace softmoe::mutation
