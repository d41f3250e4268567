// SPDX-License-Identifier: Apache-2.0
#include "core/testing/message_test_util.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"

namespace softmoe {
namespace {

constexpr char kFile[] = "core/testing/testdata/three_lines.txt";

TEST(MessageOf, IsThatOfTheErrorOrOfAKindOfIt) {
  const auto damaged = [] { throw DataError("a.h5: damaged"); };
  EXPECT_EQ(MessageOf<DataError>(damaged), "a.h5: damaged");
  EXPECT_EQ(MessageOf<Error>(damaged), "a.h5: damaged");
  EXPECT_EQ(MessageOf(ExitCode::kUsage, damaged), "a.h5: damaged");
}

TEST(MessageOf, DoesNotPassAnotherErrorOffAsTheOneThatWasAskedFor) {
  const auto damaged = [] { throw DataError("a.h5: damaged"); };
  EXPECT_THROW(MessageOf<ConfigError>(damaged), DataError);
  EXPECT_THROW(MessageOf(ExitCode::kFailed, damaged), DataError);
  const auto surprise = [] { throw std::logic_error("surprise"); };
  EXPECT_THROW(MessageOf<Error>(surprise), std::logic_error);
}

TEST(MessageOf, SaysThatNothingWasThrown) {
  EXPECT_EQ(MessageOf<Error>([] { return 7; }), kNoError);
  EXPECT_EQ(MessageOf(ExitCode::kUsage, [] { return 7; }), kNoError);
}

TEST(Says, WhetherAllPartsAreThere) {
  const std::string text = "a.toml:3: router.tau = -1";
  EXPECT_TRUE(Says(text, "tau"));
  EXPECT_TRUE(Says(text, "-1", std::string("a.toml:3"), std::string_view("")));
  EXPECT_FALSE(Says(text, "tau", "a.toml:4"));
  EXPECT_FALSE(Says("", "tau"));
}

TEST(Says, ShowsWhatIsMissingAndTheText) {
  const std::string message = Says("one two", "one", "three", "four").message();
  EXPECT_EQ(message, "expected: three\nexpected: four\ngot: one two");
  // Where nothing is missing, EXPECT_FALSE shows the text.
  EXPECT_EQ(std::string(Says("one two", "one").message()), "one two");
}

TEST(Count, OfPartsOneAfterTheOther) {
  EXPECT_EQ(Count("aaa, aa", "aa"), 2);
  EXPECT_EQ(Count("a", "aa"), 0);
}

TEST(Replaced, IsTheFirstWhichMustBeThere) {
  EXPECT_EQ(Replaced("a b b", "b", "cd"), "a cd b");
  EXPECT_TRUE(Says(MessageOf<InternalError>([] { Replaced("a b", "c", "d"); }),
                   "no text c"));
}

TEST(EqualsFile, ShowsTheLinesThatDiffer) {
  EXPECT_TRUE(EqualsFile("one\ntwo\nthree\n", kFile));
  EXPECT_TRUE(Says(EqualsFile("one\n2\nthree\n", kFile).message(),
                   " one\n-two\n+2\n three\n"));
  const auto open_end = EqualsFile("one\ntwo\nthree", kFile);
  EXPECT_FALSE(open_end);
  EXPECT_TRUE(Says(open_end.message(), "No newline at end"));
}

TEST(EqualsFile, RenewsTheFileAmongTheSources) {
  const std::filesystem::path sources = FreshFolder("sources");
  ::setenv("SOFTMOE_RENEW", "1", 1);
  ::unsetenv("BUILD_WORKSPACE_DIRECTORY");
  const auto nowhere = EqualsFile("1\n", kFile);
  EXPECT_FALSE(nowhere);
  EXPECT_TRUE(Says(nowhere.message(), "./bazelw run"));
  ::setenv("BUILD_WORKSPACE_DIRECTORY", sources.c_str(), 1);
  EXPECT_TRUE(EqualsFile("1\n", kFile));
  ::unsetenv("BUILD_WORKSPACE_DIRECTORY");
  ::unsetenv("SOFTMOE_RENEW");
  EXPECT_EQ(ReadWholeFile(sources / kFile), "1\n");
  EXPECT_TRUE(EqualsFile("one\ntwo\nthree\n", kFile));  // the test's own
}

}  // namespace
}  // namespace softmoe
