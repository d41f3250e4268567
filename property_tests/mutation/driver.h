// SPDX-License-Identifier: Apache-2.0
//
// driver.h - what rounds of chosen and of drawn faults share: where the sources
// are, where what is built with faults lies, and what a person is told.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_DRIVER_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_DRIVER_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace softmoe::mutation {

// A line on stdout, at once.
void Say(const std::string& text);
// Says how far something is, about twenty times.
std::function<void(size_t, size_t)> Progress(const std::string& what);

// The user's checkout. Throws EnvironmentError if `bazel run` did not name it.
std::filesystem::path Workspace();

// The folder of all builds with faults, ~/.cache/softmoe/mutants: one run may
// use it at a time. Throws EnvironmentError while another one does. What the
// last one kept is there; the scratch of its suites is not.
class BuildFolder {
 public:
  BuildFolder();
  ~BuildFolder();
  BuildFolder(const BuildFolder&) = delete;
  BuildFolder& operator=(const BuildFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Where suites have their own folders (RunSuite).
  std::filesystem::path scratch() const { return path_ / "scratch"; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_DRIVER_H_
