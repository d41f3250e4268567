// SPDX-License-Identifier: Apache-2.0
//
// The library is found where this machine has it; where it has none, the error
// says what to do. Each test has its own process: the search happens once.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "kernels/cuda/nvidia_libraries.h"

namespace softmoe::kernels {
namespace {

TEST(CublasLtLibraryDeathTest, IsTakenFromCudaHomeFirst) {
  const char* home = std::getenv("CUDA_HOME");
  const std::string folder = home != nullptr ? home : "/usr/local/cuda";
  if (!std::filesystem::exists(folder + "/lib64/libcublasLt.so")) {
    GTEST_SKIP() << "no cuBLAS in " << folder << "/lib64";
  }
  EXPECT_EXIT(
      {
        setenv("CUDA_HOME", folder.c_str(), 1);
        std::fprintf(stderr, "path: %s", LoadCublasLt().path.c_str());
        std::exit(LoadCublasLt().missing.empty() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "path: " + folder + "/lib64/libcublasLt.so");
}

TEST(CublasLtLibraryDeathTest, AFolderWithoutItIsPassedOver) {
  EXPECT_EXIT(
      {
        setenv("CUDA_HOME", "/nowhere", 1);
        const CublasLtLibrary& library = LoadCublasLt();
        std::fprintf(stderr, "%s", library.missing.c_str());
        std::exit(library.path.empty() != library.missing.empty() &&
                          library.path.find("/nowhere") == std::string::npos
                      ? 0
                      : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace softmoe::kernels
