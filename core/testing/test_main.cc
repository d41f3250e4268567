// SPDX-License-Identifier: Apache-2.0
//
// test_main.cc - main() of a room's test program, which holds the tests of all
// its *_test.cc files:
//
//   test                     all of them
//   test --file=lapsum_test  those of lapsum_test.cc; may be repeated
//
// and the options of GoogleTest; with --gtest_filter, a test must pass both.
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include "core/errors.h"
#include "core/files/temporary_folder.h"

namespace {

// Makes a folder in memory; returns null if the machine has no file system
// there. Tests sync what they write, as programs sync a user's files, and on a
// disk that takes ten times as long as the tests themselves.
std::unique_ptr<softmoe::TemporaryFolder> MakeMemoryFolder() {
  const std::filesystem::path memory = "/dev/shm";
  constexpr uintmax_t kWanted = uintmax_t{1} << 30;  // bytes
  if (access(memory.c_str(), W_OK) != 0) return nullptr;
  try {
    // Removes what tests that were killed left there.
    auto folder =
        std::make_unique<softmoe::TemporaryFolder>(memory / "softmoe");
    std::error_code error;
    const auto space = std::filesystem::space(memory, error);
    if (error || space.available < kWanted) return nullptr;
    return folder;
  } catch (const softmoe::EnvironmentError&) {
    return nullptr;  // not even room for a folder
  }
}

constexpr std::string_view kFile = "--file=";

bool MatchesOneOf(const std::string& name, const std::string& patterns) {
  std::istringstream in(patterns);
  for (std::string pattern; std::getline(in, pattern, ':');) {
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

// Whether GoogleTest's "PATTERNS-PATTERNS" accepts a test.
bool Passes(const std::string& name, const std::string& filter) {
  const size_t minus = filter.find('-');
  const std::string wanted = filter.substr(0, minus);
  if (minus != std::string::npos &&
      MatchesOneOf(name, filter.substr(minus + 1))) {
    return false;
  }
  return wanted.empty() || MatchesOneOf(name, wanted);
}

// Narrows GoogleTest's filter to the tests of `files`. Returns the files that
// have no test in this program.
std::set<std::string> ChooseFiles(const std::set<std::string>& files) {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const std::string filter = GTEST_FLAG_GET(filter);
  std::set<std::string> missing = files;
  std::string chosen;
  for (int s = 0; s < tests.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *tests.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string file = std::filesystem::path(test.file()).stem();
      if (!files.contains(file)) continue;
      missing.erase(file);
      const std::string name = std::string(suite.name()) + "." + test.name();
      if (Passes(name, filter)) chosen += ":" + name;
    }
  }
  GTEST_FLAG_SET(filter, chosen.empty() ? "-*" : chosen.substr(1));
  return missing;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::set<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kFile)) {
      std::fprintf(stderr, "%s: options are --file=NAME and GoogleTest's\n",
                   argv[i]);
      return 2;
    }
    files.emplace(argument.substr(kFile.size()));
  }
  if (!files.empty()) {
    const std::set<std::string> missing = ChooseFiles(files);
    for (const std::string& file : missing) {
      std::fprintf(stderr, "--file=%s: %s.cc has no test in this program\n",
                   file.c_str(), file.c_str());
    }
    if (!missing.empty()) return 2;
  }
  const auto memory = MakeMemoryFolder();
  if (memory != nullptr) {
    setenv("TEST_TMPDIR", memory->path().c_str(), /*overwrite=*/1);
    // Open MPI names its files by the number of mpirun's process. Sandboxes
    // share these folders and number their processes alike, so two tests would
    // write into each other's messages.
    for (const char* name : {"OMPI_MCA_btl_vader_backing_directory",
                             "OMPI_MCA_orte_tmpdir_base"}) {
      setenv(name, memory->path().c_str(), /*overwrite=*/1);
    }
  }
  return RUN_ALL_TESTS();
}
