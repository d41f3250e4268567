// SPDX-License-Identifier: Apache-2.0
//
// paper_recorder as the build runs it: what it writes, messages, exit codes.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"

namespace softmoe::golden {
namespace {

ProgramResult RunRecorder(const std::string& arguments,
                          const std::filesystem::path& folder) {
  return RunTestProgram("golden/paper/paper_recorder", arguments + " 2>&1",
                        folder);
}

// The sources' path, for a shell.
std::string QuotedSource() {
  return "'" +
         std::filesystem::absolute(RunfilePath("golden/paper/paper.toml"))
             .string() +
         "'";
}

TEST(PaperRecorder, WritesTheFileThatIsShipped) {
  const auto folder = FreshFolder("recorder");
  const ProgramResult result = RunRecorder(QuotedSource() + " a.h5", folder);
  EXPECT_TRUE(EndedWith(result, 0));
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{"a.h5"});
  // EXPECT_EQ would print both.
  EXPECT_TRUE(ReadWholeFile(folder / "a.h5") ==
              ReadWholeFile(RunfilePath("golden/paper/paper.h5")));
}

TEST(PaperRecorder, RefusesAnyOtherNumberOfArguments) {
  const auto folder = FreshFolder("recorder_usage");
  for (const std::string& arguments :
       {std::string(), QuotedSource(), QuotedSource() + " a.h5 b.h5"}) {
    const ProgramResult result = RunRecorder(arguments, folder);
    EXPECT_TRUE(EndedWith(result, 2)) << arguments;
    EXPECT_EQ(result.output,
              "paper_recorder: error: usage: paper_recorder PAPER.toml "
              "OUT.h5\n");
  }
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{});
}

TEST(PaperRecorder, NamesTheFileThatItCannotReadOrWrite) {
  const auto folder = FreshFolder("recorder_missing");
  const std::string reason =
      "': No such file or directory; check the path; a relative path starts at "
      "the folder where the command was run\n";
  const ProgramResult unread = RunRecorder("none/paper.toml a.h5", folder);
  EXPECT_TRUE(EndedWith(unread, 5));
  EXPECT_EQ(unread.output,
            "paper_recorder: error: cannot read 'none/paper.toml" + reason);
  const ProgramResult unwritten =
      RunRecorder(QuotedSource() + " none/a.h5", folder);
  EXPECT_TRUE(EndedWith(unwritten, 5));
  EXPECT_EQ(unwritten.output,
            "paper_recorder: error: cannot write 'none/a.h5" + reason);
  EXPECT_EQ(FilesIn(folder), std::vector<std::string>{});
}

}  // namespace
}  // namespace softmoe::golden
