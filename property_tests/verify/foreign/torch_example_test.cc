// SPDX-License-Identifier: Apache-2.0
//
// Runs the PyTorch example of README.md: it passes, and with its bug planted it
// fails. Tagged manual, because PyTorch is not a dependency of ours:
//   ./bazelw test //property_tests/verify/foreign:torch_example_test
//       --test_env=SOFTMOE_PYTHON=/path/to/python
// with a Python that has torch, h5py and numpy; without the variable, python3.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;

class TorchExample : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* python = ::getenv("SOFTMOE_PYTHON");
    folder_ = FreshFolder("torch");
    // The code of the example, cut out of the page.
    const std::string page =
        ReadWholeFile(RunfilePath("property_tests/verify/foreign/README.md"));
    const std::string mark = "```python\n";
    const size_t begin = page.find(mark) + mark.size();
    ASSERT_GT(begin, mark.size());
    std::ofstream(folder_ / "page.py")
        << page.substr(begin, page.find("```\n", begin) - begin);
    std::ofstream(folder_ / "mine.py")
        << "#!/bin/sh\nexec " << (python == nullptr ? "python3" : python)
        << " '" << (folder_ / "page.py").string() << "' \"$@\"\n";
    fs::permissions(folder_ / "mine.py", fs::perms::owner_all);
  }
  ProgramResult Run(const std::string& arguments) const {
    return RunTestProgram("property_tests/verify/verify", arguments + " 2>&1",
                          folder_);
  }

  fs::path folder_;
};

TEST_F(TorchExample, PassesByServeAndVectors) {
  EXPECT_TRUE(EndedWith(Run("run op=lapsum impl=serve:./mine.py --cases 300"),
                        0, "PASS: 300 cases"));
  EXPECT_TRUE(
      EndedWith(Run("run op=lapsum dtype=f64 impl=serve:./mine.py --cases 64"),
                0, "PASS: 64 cases"));
  EXPECT_TRUE(
      EndedWith(Run("export-vectors op=lapsum --out v.h5"), 0, "100 cases"));
  ASSERT_EQ(
      std::system(("cd '" + folder_.string() + "' && ./mine.py v.h5 theirs.h5")
                      .c_str()),
      0);
  EXPECT_TRUE(
      EndedWith(Run("check-vectors v.h5 theirs.h5"), 0, "PASS: 100 cases"));
}

TEST_F(TorchExample, ItsPlantedBugIsFound) {
  ::setenv("SOFT_TOPK_BUG", "temperature", 1);
  const ProgramResult fuzz =
      Run("fuzz op=lapsum impl=serve:./mine.py --seconds 20");
  ::unsetenv("SOFT_TOPK_BUG");
  EXPECT_TRUE(EndedWith(fuzz, 1, "= temperature"));
  EXPECT_TRUE(EndedWith(fuzz, 1, " rows=1 "));
}

}  // namespace
}  // namespace softmoe::verify
