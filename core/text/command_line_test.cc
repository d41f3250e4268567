// SPDX-License-Identifier: Apache-2.0
#include "core/text/command_line.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

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

// Returns what RequireValues says about a program with two options of its own,
// one in a group, a flag, and a command.
std::string Lacking(std::vector<const char*> words) {
  CLI::App app;
  std::string out, data;
  std::vector<std::string> settings;
  std::optional<double> tau;
  bool quiet = false;
  app.add_option("--out", out);
  app.add_option("--set", settings);
  app.add_option_group("text")->add_option("--data", data);
  app.add_flag("--quiet", quiet);
  app.add_subcommand("run")->add_option("--tau", tau);
  words.insert(words.begin(), "program");
  app.parse(static_cast<int>(words.size()), words.data());
  return MessageOf<ConfigError>([&] { RequireValues(app); });
}

TEST(RequireValues, RefusesAnEmptyOne) {
  const std::string rest =
      ": its value is empty; give one, or leave the option out";
  EXPECT_EQ(Lacking({"--out", ""}), "--out" + rest);
  EXPECT_EQ(Lacking({"--set", "a=1", "--set", ""}), "--set" + rest);
  EXPECT_EQ(Lacking({"--data", ""}), "--data" + rest);
  EXPECT_EQ(Lacking({"run", "--tau", ""}), "--tau" + rest);
}

TEST(RequireValues, RefusesAnotherOptionInItsPlace) {
  EXPECT_EQ(Lacking({"--out=", "--quiet"}),
            "--out: its value is --quiet, which is an option; give one, or "
            "leave --out out");
  EXPECT_EQ(Lacking({"--data", "--out"}),
            "--data: its value is --out, which is an option; give one, or "
            "leave --data out");
}

TEST(RequireValues, TakesAllOthers) {
  EXPECT_EQ(Lacking({}), kNoError);
  EXPECT_EQ(Lacking({"--quiet", "--out", "-", "--data", "--none", "--set",
                     "x=", " "}),
            kNoError);
  EXPECT_EQ(Lacking({"run", "--tau", "-1"}), kNoError);
}

TEST(RefuseOctal, RefusesOnlyIntegersThatBeginWithAZeroTooMany) {
  EXPECT_EQ(RefuseOctal("010"),
            "010 begins with 0, which would make it octal; leave that zero "
            "out");
  for (const char* octal : {"00", "-07", "+010", " 010", "08"}) {
    EXPECT_NE(RefuseOctal(octal), "") << octal;
  }
  for (const char* other : {"", "0", "10", "-10", "0x10", "0.5", "100", "-"}) {
    EXPECT_EQ(RefuseOctal(other), "") << other;
  }
}

}  // namespace
}  // namespace softmoe
