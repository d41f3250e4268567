// SPDX-License-Identifier: Apache-2.0
//
// The library is found where this machine has it; where it has none, the error
// says what to do. Each test has its own process: the search happens once.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "kernels/cuda/nvidia_libraries.h"

// A folder in which each library that is asked for is an empty file, while
// there is none elsewhere; "": all are as they are.
static std::string broken_folder;

// In place of the C library's, which it calls.
extern "C" void* dlopen(const char* path, int mode) noexcept {
  static const auto load =
      reinterpret_cast<decltype(&dlopen)>(dlsym(RTLD_NEXT, "dlopen"));
  if (broken_folder.empty()) return load(path, mode);
  const bool below = std::string(path).starts_with(broken_folder);
  if (below) std::ofstream(path).flush();
  return load(below ? path : "/nowhere", mode);
}

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

// So is an NCCL.
TEST(CublasLtLibraryDeathTest, WhatCannotBeLoadedIsNamed) {
  const std::filesystem::path home =
      std::filesystem::path(testing::TempDir()) / "cublas_home";
  std::filesystem::create_directories(home / "lib64");
  EXPECT_EXIT(
      {
        setenv("CUDA_HOME", home.c_str(), 1);
        broken_folder = home.string();
        std::fprintf(stderr, "%s, %s", LoadCublasLt().missing.c_str(),
                     LoadNccl().missing.c_str());
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "it is there and cannot be loaded: "
      ".*/cublas_home/lib64/libcublasLt.so.[0-9]+: file too short; install"
      ".*, (NCCL is there and cannot be loaded: "
      ".*/libnccl.so.2: file too short; install|.*without NCCL)");
}

}  // namespace
}  // namespace softmoe::kernels
