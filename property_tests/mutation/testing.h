// SPDX-License-Identifier: Apache-2.0
//
// testing.h - small projects for the tests of planted and drawn faults.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_TESTING_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_TESTING_H_

#include <filesystem>
#include <map>
#include <string>

#include "property_tests/mutation/project.h"

namespace softmoe::mutation {

// Sources by their paths, in a folder of its own, with the switch. Each .cc
// file is a unit; that of a test is a program, too, linked with what it asks
// for of the units that are no tests.
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
