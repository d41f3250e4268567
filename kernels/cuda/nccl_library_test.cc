// SPDX-License-Identifier: Apache-2.0
//
// NCCL is found where this machine has it; where it has none, or an old one,
// the error says what to do. Each test has its own process: NCCL loads once.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "kernels/cuda/nvidia_libraries.h"

namespace softmoe::kernels {
namespace {

TEST(NcclLibraryDeathTest, IsTakenFromCudaHomeFirst) {
  const char* home = std::getenv("CUDA_HOME");
  const std::string folder = home != nullptr ? home : "/usr/local/cuda";
  if (!std::filesystem::exists(folder + "/lib64/libnccl.so.2")) {
    GTEST_SKIP() << "no NCCL in " << folder << "/lib64";
  }
  EXPECT_EXIT(
      {
        setenv("CUDA_HOME", folder.c_str(), 1);
        const NcclLibrary& library = LoadNccl();
        std::fprintf(stderr, "path: %s, version: %s, missing: %s",
                     library.path.c_str(), library.version.c_str(),
                     library.missing.c_str());
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "path: " + folder +
          "/lib64/libnccl.so.2, version: 2\\.[0-9]+\\.[0-9]+, "
          "missing: $");
}

// A library of that name that is not NCCL is treated like an old one.
TEST(NcclLibraryDeathTest, WhatDoesNotSuitIsPassedOverOrNamed) {
  const std::filesystem::path home =
      std::filesystem::path(testing::TempDir()) / "nccl_home";
  std::filesystem::create_directories(home / "lib64");
  std::filesystem::remove(home / "lib64/libnccl.so.2");
  std::filesystem::create_symlink("/lib/x86_64-linux-gnu/libm.so.6",
                                  home / "lib64/libnccl.so.2");
  EXPECT_EXIT(
      {
        setenv("CUDA_HOME", home.c_str(), 1);
        const NcclLibrary& library = LoadNccl();
        std::fprintf(stderr, "path: %s, missing: %s", library.path.c_str(),
                     library.missing.c_str());
        std::exit(library.path.find("nccl_home") == std::string::npos &&
                          library.path.empty() != library.missing.empty()
                      ? 0
                      : 1);
      },
      testing::ExitedWithCode(0),
      "(path: /|path: libnccl|too old: .*nccl_home.* or later is needed; "
      "install|without NCCL)");
}

}  // namespace
}  // namespace softmoe::kernels
