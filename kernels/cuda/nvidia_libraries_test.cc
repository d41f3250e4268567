// SPDX-License-Identifier: Apache-2.0
//
// Where NVIDIA's libraries are looked for, and in which order.
#include "kernels/cuda/nvidia_libraries.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "core/testing/file_test_util.h"

namespace softmoe::kernels {
namespace {

TEST(NvidiaLibraries, AreLookedForInThisOrder) {
  unsetenv("CUDA_HOME");
  unsetenv("VIRTUAL_ENV");
  const auto paths = [] { return LibraryPaths("libx.so.2", {"x", "cu9"}); };
  const std::vector<std::string> everywhere = paths();
  // Two folders of packages, and two in each, for all that this machine has.
  std::error_code ignored;
  const std::filesystem::directory_iterator begin("/usr/local/lib", ignored);
  ASSERT_EQ(std::ssize(everywhere), 2 + 4 * std::distance(begin, {}));
  EXPECT_EQ(everywhere[0], "libx.so.2");
  EXPECT_EQ(everywhere[1], "/usr/local/cuda/lib64/libx.so.2");
  for (size_t i = 2; i < everywhere.size(); ++i) {
    EXPECT_TRUE(everywhere[i].starts_with("/usr/local/lib/")) << everywhere[i];
  }

  const std::filesystem::path python = FreshFolder("nvidia_libraries");
  std::filesystem::create_directories(python / "lib/python3.11");
  setenv("CUDA_HOME", "/opt/cuda", 1);
  setenv("VIRTUAL_ENV", python.c_str(), 1);
  std::vector<std::string> expected = everywhere;
  expected.insert(expected.begin(), "/opt/cuda/lib64/libx.so.2");
  int at = 3;  // before what is in /usr/local/lib
  for (const char* in :
       {"site-packages/nvidia/x", "site-packages/nvidia/cu9",
        "dist-packages/nvidia/x", "dist-packages/nvidia/cu9"}) {
    expected.insert(
        expected.begin() + at++,
        python.string() + "/lib/python3.11/" + in + "/lib/libx.so.2");
  }
  EXPECT_EQ(paths(), expected);

  unsetenv("CUDA_HOME");
  setenv("VIRTUAL_ENV", "/nowhere", 1);
  EXPECT_EQ(paths(), everywhere);
  unsetenv("VIRTUAL_ENV");
}

}  // namespace
}  // namespace softmoe::kernels
