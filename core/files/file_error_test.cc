// SPDX-License-Identifier: Apache-2.0
#include "core/files/file_error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"

namespace softmoe {
namespace {

TEST(WriteAll, WritesWhereTheFileStandsOrAtAnOffset) {
  const auto path = FreshFolder("write_all") / "data";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  EXPECT_EQ(WriteAll(file, "abc"), 0);
  EXPECT_EQ(WriteAll(file, "XY", 1), 0);
  EXPECT_EQ(WriteAll(file, ""), 0);
  EXPECT_EQ(WriteAll(file, "d"), 0);
  EXPECT_EQ(WriteAll(file, "0", 0), 0);
  ::close(file);
  EXPECT_EQ(ReadWholeFile(path), "0XYd");
}

// The first write takes what fits.
TEST(WriteAll, SaysWhyNotAllIsWritten) {
  const auto path = FreshFolder("write_too_much") / "data";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const std::string bytes(1000, 'x');
  {
    const FullDisk disk(100);
    EXPECT_EQ(WriteAll(file, bytes), EFBIG);
    EXPECT_EQ(WriteAll(file, bytes, 50), EFBIG);
  }
  ::close(file);
  EXPECT_EQ(ReadWholeFile(path), std::string(100, 'x'));
  EXPECT_EQ(WriteAll(-1, "x"), EBADF);
}

}  // namespace
}  // namespace softmoe
