// SPDX-License-Identifier: Apache-2.0
#include "core/testing/text_test_util.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"

namespace softmoe {
namespace {

constexpr char kFile[] = "core/testing/testdata/three_lines.txt";

TEST(ExpectHas, ShowsWhatIsNotThere) {
  ExpectHas("one two", "e t");
  EXPECT_NONFATAL_FAILURE(ExpectHas("one two", "three"), "three\nin\none two");
}

TEST(ExpectFileEquals, ShowsTheLinesThatDiffer) {
  ExpectFileEquals(kFile, "one\ntwo\nthree\n");
  EXPECT_NONFATAL_FAILURE(ExpectFileEquals(kFile, "one\n2\nthree\n"),
                          " one\n-two\n+2\n three\n");
  EXPECT_NONFATAL_FAILURE(ExpectFileEquals(kFile, "one\ntwo\nthree"),
                          "No newline at end");
}

TEST(ExpectFileEquals, RenewsTheFileAmongTheSources) {
  const std::filesystem::path sources = FreshFolder("sources");
  ::setenv("SOFTMOE_RENEW", "1", 1);
  ::unsetenv("BUILD_WORKSPACE_DIRECTORY");
  EXPECT_NONFATAL_FAILURE(ExpectFileEquals(kFile, "1\n"), "./bazelw run");
  ::setenv("BUILD_WORKSPACE_DIRECTORY", sources.c_str(), 1);
  ExpectFileEquals(kFile, "1\n");
  ::unsetenv("BUILD_WORKSPACE_DIRECTORY");
  ::unsetenv("SOFTMOE_RENEW");
  EXPECT_EQ(ReadWholeFile(sources / kFile), "1\n");
  ExpectFileEquals(kFile, "one\ntwo\nthree\n");  // the test's own
}

}  // namespace
}  // namespace softmoe
