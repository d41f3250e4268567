// SPDX-License-Identifier: Apache-2.0
//
// The build runs paper_recorder; this tests that its output does not depend on
// the place, and what it refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::golden {
namespace {

ProgramResult Record(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   RunfilePath("golden/paper/paper_recorder").string());
  return RunProgram(arguments, ".");
}

TEST(PaperRecorder, WritesTheBytesThatShip) {
  const std::string written = FreshFolder("paper_recorder") / "written.h5";
  const ProgramResult result =
      Record({RunfilePath("golden/paper/paper.toml").string(), written});
  EXPECT_TRUE(EndedWith(result, 0));
  EXPECT_EQ(ReadWholeFile(written),
            ReadWholeFile(RunfilePath("golden/paper/paper.h5")));
}

TEST(PaperRecorder, RefusesAnotherNumberOfArguments) {
  const std::string source = RunfilePath("golden/paper/paper.toml").string();
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {}, {source}, {source, "a.h5", "b.h5"}}) {
    const ProgramResult result = Record(arguments);
    EXPECT_TRUE(EndedWith(result, 2));
    EXPECT_EQ(result.output,
              "paper_recorder: error: usage: paper_recorder PAPER.toml "
              "OUT.h5\n");
  }
}

}  // namespace
}  // namespace softmoe::golden
