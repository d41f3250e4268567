// SPDX-License-Identifier: Apache-2.0
//
// testing.h - small projects for tests of planted and drawn faults.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_TESTING_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_TESTING_H_

#include <filesystem>
#include <map>
#include <string>

#include "property_tests/mutation/project.h"

namespace softmoe::mutation {

// Sources by their paths, and the switch, in a separate folder. Each .cc file
// is a unit; a test's is also a program, linked with those units that it needs
// and that are not tests.
class TestProject {
 public:
  explicit TestProject(const std::map<std::string, std::string>& sources);

  const std::filesystem::path& folder() const { return folder_; }
  const Project& project() const { return project_; }

 private:
  std::filesystem::path folder_;
  Project project_;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_TESTING_H_
