// SPDX-License-Identifier: Apache-2.0
#include "core/files/mapped_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// Two pages and a bit.
std::string SomeBytes() {
  std::string bytes(2 * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + 100, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i % 251);
  }
  return bytes;
}

int Sum(const MappedFile& file) {
  int sum = 0;
  for (int64_t i = 0; i < file.size(); ++i) sum += file.data()[i];
  return sum;
}

TEST(MappedFile, HasTheBytes) {
  const fs::path path = FreshFolder("mapped") / "file";
  WriteFileAtomically(path, SomeBytes());
  MappedFile file(path);
  MappedFile moved(std::move(file));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.data()),
                        static_cast<size_t>(moved.size())),
            SomeBytes());
  WriteFileAtomically(path, "");
  EXPECT_EQ(MappedFile(path).size(), 0);
  // The old file is still mapped.
  EXPECT_EQ(moved.size(), static_cast<int64_t>(SomeBytes().size()));
}

TEST(MappedFile, WhatCannotBeMappedIsAnEnvironmentError) {
  const fs::path folder = FreshFolder("unmapped");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile(folder / "absent"), EnvironmentError);
  EXPECT_THROW(MappedFile{folder}, EnvironmentError);
  EXPECT_THROW(MappedFile("/dev/zero"), EnvironmentError);
  EXPECT_THROW(MappedFile(folder / "pipe"), EnvironmentError);  // nor waits
}

using MappedFileDeathTest = testing::Test;

TEST(MappedFileDeathTest, AFileThatShrinksIsNamed) {
  const fs::path path = FreshFolder("shrinks") / "tokens.bin";
  WriteFileAtomically(path, SomeBytes());
  EXPECT_EXIT(
      {
        const MappedFile other(fs::path("/proc/self/exe"));
        MappedFile file(path);
        const MappedFile moved(std::move(file));
        fs::resize_file(path, 10);
        ::_exit(Sum(moved) == 0 ? 90 : 91);
      },
      testing::ExitedWithCode(2), "shrinks/tokens.bin: became shorter");
}

TEST(MappedFileDeathTest, OtherFaultsAreAsWithoutIt) {
  const fs::path path = FreshFolder("foreign") / "file";
  WriteFileAtomically(path, SomeBytes());
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        const MappedFile file(path);
        ::raise(SIGBUS);
        ::_exit(90);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace softmoe
