// SPDX-License-Identifier: Apache-2.0
//
// build.h - builds the tests with faults in them, each behind its switch. The
// sources stay untouched: copies of them are compiled, in separate folders.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_BUILD_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_BUILD_H_

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "property_tests/mutation/compile.h"
#include "property_tests/mutation/fault.h"
#include "property_tests/mutation/project.h"
#include "property_tests/mutation/source_tree.h"
#include "property_tests/mutation/suites.h"

namespace softmoe::mutation {

struct BuildOptions {
  // Used by this build alone; keeps objects from one Make to the next.
  std::filesystem::path folder;
  int jobs = 2;
  std::function<bool()> stop = [] { return false; };
  // Called with the number of units compiled and of all units.
  std::function<void(size_t, size_t)> on_unit = [](size_t, size_t) {};
};

class Build {
 public:
  Build(const Project& project, SourceTree& tree, const Compiler& compiler,
        BuildOptions options);

  // Returns the compiler's error for each fault, compiled alone in the first
  // unit that has its file; "" if it compiles.
  std::vector<std::string> Check(const std::vector<PlacedFault>& faults);

  // Compiles and links these programs and what they start, or, if none is
  // named, every test that can reach one of the faults. Returns the ids of
  // faults that broke the build, with the error: call again without them. If
  // the result is empty, the build is complete or was stopped.
  std::map<std::string, std::string> Make(
      const std::vector<PlacedFault>& faults,
      const std::vector<std::string>& programs = {});

  // The suites of the last Make: one per test program, or per file of one.
  const std::vector<Suite>& suites() const { return suites_; }
  // The folder of their programs.
  std::filesystem::path Runfiles() const;

  // Whether every unit, optimised as for use, becomes the same object byte by
  // byte with this fault as without it, so that nobody can tell the two apart.
  // False if the fault does not compile. Throws EnvironmentError if a compiler
  // had no memory or disk left, since nothing follows from that.
  bool HasEqualObjects(const PlacedFault& fault);

 private:
  // Returns paths of test programs.
  std::vector<std::string> TestsThatReach(
      const std::vector<PlacedFault>& faults);
  // Makes the objects of `units`. Returns compiler errors, keyed by unit.
  std::map<std::string, std::string> MakeObjects(
      const std::vector<const Unit*>& units, const Overlay& overlay);
  std::map<std::string, std::string> Culprits(const Unit& unit,
                                              std::vector<PlacedFault> faults);
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

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_BUILD_H_
