// SPDX-License-Identifier: Apache-2.0
//
// build.h - builds the tests with all drawn faults in them, each behind its
// switch.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_BUILD_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_BUILD_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "property_tests/mutation/sampled/compile.h"
#include "property_tests/mutation/sampled/draw.h"
#include "property_tests/mutation/sampled/project.h"
#include "property_tests/mutation/sampled/source_tree.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {

struct BuildOptions {
  // Private to this build; keeps objects from one Make to the next.
  std::filesystem::path folder;
  int jobs = 2;
  std::function<bool()> stop = [] { return false; };
  // Called with the number of units compiled, and of all.
  std::function<void(size_t, size_t)> on_unit = [](size_t, size_t) {};
};

class Build {
 public:
  Build(const Project& project, SourceTree& tree, const Compiler& compiler,
        BuildOptions options);

  // A compiler's error for each fault alone, in the first unit that includes
  // its file; "" if it compiles.
  std::vector<std::string> Check(const std::vector<DrawnFault>& faults);

  // Compiles and links every test that can reach one of the faults, and the
  // programs that it starts. Returns the ids of faults that break the build,
  // with the error: leave these out and call Make again. Empty: done, or
  // stopped.
  std::map<std::string, std::string> Make(
      const std::vector<DrawnFault>& faults);

  // The tests built by the last Make.
  const std::vector<Suite>& suites() const { return suites_; }

  // Whether every unit, optimised as for use, compiles to the same object byte
  // by byte with and without this fault: then nobody can tell them apart.
  bool HasEqualObjects(const DrawnFault& fault);

 private:
  std::vector<const Program*> ProgramsWith(
      const std::vector<DrawnFault>& faults);
  // Objects by the key of their unit; errors by unit.
  std::map<std::string, std::string> MakeObjects(
      const std::vector<const Unit*>& units, const Overlay& overlay);
  std::map<std::string, std::string> Culprits(const Unit& unit,
                                              std::vector<DrawnFault> faults);
  void Link(const Program& program);
  void MakeRunfiles(const std::vector<const Program*>& programs);

  const Project& project_;
  SourceTree& tree_;
  const Compiler& compiler_;
  BuildOptions options_;
  std::map<std::string, std::filesystem::path> objects_;  // keyed by unit
  std::vector<Suite> suites_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_BUILD_H_
