// SPDX-License-Identifier: Apache-2.0
#include "core/process/subprocess.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

TEST(RunProgram, ReturnsStatusAndBothStreams) {
  const ProgramResult result =
      RunProgram({"sh", "-c", "pwd; echo oops >&2; exit 7"}, "/");
  EXPECT_EQ(result.exit_status, 7);
  EXPECT_EQ(result.output, "/\noops\n");
}

TEST(RunProgram, PassesArgumentsUntouched) {
  const ProgramResult result =
      RunProgram({"printf", "%s|", "a b", "$HOME", "'"}, "/");
  EXPECT_EQ(result.output, "a b|$HOME|'|");
}

TEST(RunProgram, ReportsASignal) {
  EXPECT_EQ(RunProgram({"sh", "-c", "kill -9 $$"}, "/").exit_status, 137);
}

TEST(RunProgram, GivesNoInputAndDropsEndlessOutput) {
  EXPECT_EQ(RunProgram({"cat"}, "/").output, "");
  const ProgramResult result =
      RunProgram({"sh", "-c", "head -c 3000000 /dev/zero"}, "/");
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.output.size(), size_t{1} << 20);
}

TEST(RunProgram, NamesAProgramThatDoesNotExist) {
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { RunProgram({"no-such-program-of-ours"}, "/"); }),
                   "no-such-program-of-ours"));
}

TEST(HaveProgram, LooksInPath) {
  EXPECT_TRUE(HaveProgram("sh"));
  EXPECT_FALSE(HaveProgram("no-such-program-of-ours"));
}

}  // namespace
}  // namespace softmoe
