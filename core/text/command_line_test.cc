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

}  // namespace
}  // namespace softmoe
