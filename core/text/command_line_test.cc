// SPDX-License-Identifier: Apache-2.0
#include "core/text/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace softmoe {
namespace {

// Calls UnknownCommand for a program with the commands run and report.
std::string Unknown(std::vector<const char*> words) {
  CLI::App app;
  app.add_subcommand("run");
  app.add_subcommand("report");
  words.insert(words.begin(), "program");
  return UnknownCommand(app, static_cast<int>(words.size()), words.data());
}

TEST(UnknownCommand, IsNamedWithTheOneThatIsNear) {
  EXPECT_EQ(Unknown({"rnu", "x"}), "no command 'rnu'; did you mean 'run'?");
  EXPECT_EQ(Unknown({"op=lapsum"}),
            "no command 'op=lapsum'; known are 'run' and 'report'");
  EXPECT_EQ(Unknown({""}), "no command ''; known are 'run' and 'report'");
}

TEST(UnknownCommand, IsNoneOfTheProgramsNorAnOption) {
  EXPECT_EQ(Unknown({"run", "rnu"}), "");
  EXPECT_EQ(Unknown({"--help"}), "");
  EXPECT_EQ(Unknown({}), "");
}

// What EmptyOption says of a program with several kinds of options.
std::string Empty(std::vector<const char*> words) {
  CLI::App app;
  std::string file, out, isa;
  std::vector<std::string> rows;
  app.add_option("file", file);
  app.add_option("--out", out);
  app.add_option("--rows", rows)->delimiter(',');
  app.add_option("--isa", isa);
  app.add_flag("--quiet");
  words.insert(words.begin(), "program");
  app.parse(static_cast<int>(words.size()), words.data());
  return EmptyOption(app, {"--isa"});
}

TEST(EmptyOption, IsNamed) {
  EXPECT_EQ(Empty({"a", "--out", ""}),
            "--out is empty; give it a value, or leave it out");
  EXPECT_EQ(Empty({"--quiet", "--rows", ""}),
            "--rows is empty; give it a value, or leave it out");
}

TEST(EmptyOption, IsNoneThatHasAValueOrMayBeEmpty) {
  EXPECT_EQ(Empty({"--quiet", "--out", " ", "--rows", "a,b"}), "");
  EXPECT_EQ(Empty({"", "--isa", ""}), "");
  EXPECT_EQ(Empty({}), "");
}

}  // namespace
}  // namespace softmoe
