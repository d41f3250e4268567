// SPDX-License-Identifier: Apache-2.0
//
// driver.h - what rounds of chosen and of drawn faults share: the workspace,
// the folder of builds with faults, and the messages to the user.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_DRIVER_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_DRIVER_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace softmoe::mutation {

// Prints a line to stdout at once.
void Say(const std::string& text);
// Returns a function that reports the progress of `what`, about twenty times.
std::function<void(size_t, size_t)> Progress(const std::string& what);

// The user's checkout. Throws EnvironmentError if `bazel run` did not name it.
std::filesystem::path Workspace();

// The folder of all builds with faults, ~/.cache/softmoe/mutants, for one run
// at a time. Throws EnvironmentError while another run uses it. Keeps what the
// last run left, except for the scratch of its suites.
class BuildFolder {
 public:
  BuildFolder();
  ~BuildFolder();
  BuildFolder(const BuildFolder&) = delete;
  BuildFolder& operator=(const BuildFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Holds the suites' own folders (RunSuite).
  std::filesystem::path scratch() const { return path_ / "scratch"; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_DRIVER_H_
