// SPDX-License-Identifier: Apache-2.0
#include "core/process/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;
using Output = ProcessOptions::Output;

constexpr double kForever = std::numeric_limits<double>::infinity();

ProcessOptions Shell(const std::string& script) {
  ProcessOptions options;
  options.arguments = {"sh", "-c", script};
  return options;
}

struct Said {
  std::string output, errors;
};

// Returns all that the process prints until it has closed its outputs.
Said Listened(Process& process) {
  Said said;
  while (process.Listen(-1, [&](Process::Stream stream, std::string_view part) {
    (stream == Process::Stream::kOutput ? said.output : said.errors) += part;
  })) {
  }
  return said;
}

TEST(Process, KeepsItsOutputsApartOrTogether) {
  ProcessOptions options = Shell("echo out; echo err >&2");
  Process together(options);
  EXPECT_EQ(Listened(together).output, "out\nerr\n");
  options.output = Output::kApart;
  Process apart(options);
  const Said said = Listened(apart);
  EXPECT_EQ(said.output, "out\n");
  EXPECT_EQ(said.errors, "err\n");
}

TEST(Process, ListensToTheEndOfAProgramThatClosesItsOutputsFirst) {
  Process process(Shell("echo out; exec >&- 2>&-; sleep 0.1; exit 7"));
  std::string output;
  process.ListenToEnd(
      [&](Process::Stream, std::string_view part) { output += part; });
  EXPECT_EQ(output, "out\n");
  EXPECT_TRUE(process.HasEnded());
  EXPECT_EQ(process.ExitStatus(), 7);
}

TEST(Process, WritesAFileAnew) {
  const fs::path folder = FreshFolder("process");
  WriteFileAtomically(folder / "output", "much that stood there before");
  ProcessOptions options = Shell("echo out; echo err >&2");
  options.output = Output::kFile;
  options.output_file = folder / "output";
  Process process(options);
  ASSERT_TRUE(process.Wait(kForever));
  EXPECT_EQ(ReadWholeFile(folder / "output"), "out\nerr\n");
  EXPECT_FALSE(process.Listen(0, [](Process::Stream, std::string_view) {}));
}

TEST(Process, HasArgumentsFolderAndEnvironmentAsGiven) {
  ProcessOptions options;
  options.arguments = {"printf", "%s|", "a b", "$HOME", "'", ""};
  Process words(options);
  EXPECT_EQ(Listened(words).output, "a b|$HOME|'||");
  options = Shell("pwd; echo $SOFTMOE_A$HOME");
  options.folder = "/";
  options.environment = {"SOFTMOE_A=1"};
  Process place(options);
  EXPECT_EQ(Listened(place).output, "/\n1\n");
  EXPECT_TRUE(std::ranges::any_of(Environment(), [](const std::string& entry) {
    return entry.starts_with("PATH=");
  }));
}

TEST(Process, HasNoInputOrWhatIsSent) {
  ProcessOptions options;
  options.arguments = {"cat"};
  Process empty(options);
  EXPECT_EQ(Listened(empty).output, "");
  options.input = ProcessOptions::Input::kPipe;
  Process echo(options);
  EXPECT_TRUE(echo.Send("one\n", 60));
  EXPECT_TRUE(echo.Send("two\n", 60));
  echo.CloseInput();
  EXPECT_EQ(Listened(echo).output, "one\ntwo\n");
  ASSERT_TRUE(echo.Wait(kForever));
  EXPECT_EQ(echo.ExitStatus(), 0);
}

TEST(Process, SendingToOneThatDoesNotReadEnds) {
  ProcessOptions options = Shell("exec sleep 1000");
  options.input = ProcessOptions::Input::kPipe;
  Process process(options);
  EXPECT_FALSE(process.Send(std::string(1 << 20, 'x'), 0.1));
  EXPECT_FALSE(process.HasEnded());
}

TEST(Process, SendingToOneThatHasEndedIsNotOurEnd) {
  ProcessOptions options = Shell("exit 3");
  options.input = ProcessOptions::Input::kPipe;
  Process process(options);
  ASSERT_TRUE(process.Wait(kForever));
  EXPECT_FALSE(process.Send("anybody there?", 60));
  EXPECT_EQ(process.ExitStatus(), 3);
  EXPECT_EQ(process.Signal(), 0);
}

TEST(Process, TellsASignalFromAStatus) {
  Process process(Shell("kill -TERM $$"));
  ASSERT_TRUE(process.Wait(kForever));
  EXPECT_EQ(process.Signal(), SIGTERM);
  EXPECT_EQ(process.ExitStatus(), 128 + SIGTERM);
}

// Even if this process ignores SIGPIPE (stop_signal.h), the program does not.
TEST(Process, EndsAtAPipeThatNobodyReads) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  for (const bool own_group : {false, true}) {
    ProcessOptions options = Shell("kill -PIPE $$");
    options.own_group = own_group;
    Process process(options);
    ASSERT_TRUE(process.Wait(kForever));
    EXPECT_EQ(process.Signal(), SIGPIPE);
  }
  signal(SIGPIPE, before);
}

TEST(Process, IsKilledWhenItsTimeIsOver) {
  ProcessOptions options;
  options.arguments = {"cat"};  // waits for the end of an input that stays open
  options.input = ProcessOptions::Input::kPipe;
  Process process(options);
  EXPECT_FALSE(process.HasEnded());
  EXPECT_FALSE(process.Wait(0.01));
  EXPECT_THROW(process.ExitStatus(), InternalError);  // it has none yet
  process.Kill();
  EXPECT_TRUE(process.HasEnded());
  EXPECT_EQ(process.Signal(), SIGKILL);
}

// If another process traces the program, only the tracer is told of its end, as
// if the program hung in a driver.
TEST(Process, OneThatDoesNotEndWhenKilledIsGivenUp) {
  for (const bool own_group : {false, true}) {
    ProcessOptions options = Shell("echo $$; exec sleep 1000");
    options.own_group = own_group;
    Process process(options);
    std::string said;
    while (!said.ends_with('\n')) {
      ASSERT_TRUE(process.Listen(
          -1, [&](Process::Stream, std::string_view part) { said += part; }));
    }
    const pid_t traced = std::stoi(said);
    std::array<int, 2> ready{};
    ASSERT_EQ(pipe(ready.data()), 0);
    const pid_t tracer = fork();
    if (tracer == 0) {
      const char may = ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) == 0;
      (void)!write(ready[1], &may, 1);
      while (true) pause();
    }
    char may = 0;
    EXPECT_EQ(read(ready[0], &may, 1), 1);
    const bool ended = process.Kill(0.1);
    EXPECT_EQ(kill(tracer, SIGKILL), 0);
    EXPECT_EQ(waitpid(tracer, nullptr, 0), tracer);
    for (const int end : ready) close(end);
    if (may == 0) GTEST_SKIP() << "nothing may be traced here";
    EXPECT_FALSE(ended);
    EXPECT_TRUE(process.HasEnded());
    EXPECT_TRUE(
        Says(MessageOf<EnvironmentError>([&] { (void)process.Signal(); }),
             "did not end"));
    EXPECT_EQ(waitpid(traced, nullptr, 0), traced);
  }
}

TEST(Process, WhereSignalsOfChildrenAreIgnoredTheEndIsNotKnown) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  {
    Process process(Shell("exit 3"));
    EXPECT_TRUE(process.Wait(kForever));
    EXPECT_THROW(process.ExitStatus(), EnvironmentError);
    EXPECT_THROW(process.Signal(), EnvironmentError);
  }
  signal(SIGCHLD, before);
}

// The shell's child holds the output open, so listening ends only because the
// whole group is killed.
TEST(Process, AGroupOfItsOwnEndsWithItsChildren) {
  ProcessOptions options = Shell("sleep 1000 & echo started; wait");
  options.own_group = true;
  Process process(options);
  std::string said;
  const Process::Sink keep = [&](Process::Stream, std::string_view part) {
    said += part;
  };
  while (said != "started\n") ASSERT_TRUE(process.Listen(-1, keep));
  process.Kill();
  EXPECT_EQ(process.Signal(), SIGKILL);
  Listened(process);
}

// Otherwise Kill would reach whatever has been given its number meanwhile.
TEST(Process, AGroupOfItsOwnKeepsItsNumberUntilItIsKilled) {
  ProcessOptions options = Shell("sleep 1000 & echo $$; exit 3");
  options.own_group = true;
  Process process(options);
  std::string said;
  while (!said.ends_with('\n')) {
    ASSERT_TRUE(process.Listen(
        -1, [&](Process::Stream, std::string_view part) { said += part; }));
  }
  ASSERT_TRUE(process.Wait(kForever));
  EXPECT_EQ(process.ExitStatus(), 3);
  const pid_t leader = std::stoi(said);
  EXPECT_EQ(kill(leader, 0), 0);
  process.Kill();
  EXPECT_EQ(kill(leader, 0), -1);
  EXPECT_EQ(process.ExitStatus(), 3);
  Listened(process);  // what held the output open is gone, too
}

TEST(Process, WhatCannotBeStartedIsAnEnvironmentError) {
  const auto message = [](const ProcessOptions& options) -> std::string {
    return MessageOf<EnvironmentError>([&] { Process process(options); });
  };
  ProcessOptions options;
  options.arguments = {"no-such-program-of-ours"};
  EXPECT_EQ(message(options),
            "cannot start 'no-such-program-of-ours' in '.': No such file or "
            "directory");
  options.arguments = {"./no-such-program-of-ours"};
  EXPECT_TRUE(Says(message(options), "a script names its interpreter"));
  options = Shell("true");
  options.folder = "/no-such-folder-of-ours";
  EXPECT_TRUE(Says(message(options), "in '/no-such-folder-of-ours'"));
}

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
  try {
    RunProgram({"no-such-program-of-ours"}, "/");
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("no-such-program-of-ours"),
              std::string::npos);
  }
}

TEST(HaveProgram, LooksInPath) {
  EXPECT_TRUE(HaveProgram("sh"));
  EXPECT_FALSE(HaveProgram("no-such-program-of-ours"));
  const fs::path folder = FreshFolder("in_path");
  fs::create_directory(folder / "a-folder-of-ours");
  const char* const path = getenv("PATH");
  const std::string before = path != nullptr ? path : "/usr/bin:/bin";
  ASSERT_EQ(setenv("PATH", (folder.string() + ":" + before).c_str(), 1), 0);
  EXPECT_FALSE(HaveProgram("a-folder-of-ours"));
  WriteFileAtomically(folder / "a-text-of-ours", "");
  EXPECT_FALSE(IsProgram(folder / "a-folder-of-ours"));
  EXPECT_FALSE(IsProgram(folder / "a-text-of-ours"));
  fs::permissions(folder / "a-text-of-ours", fs::perms::owner_exec,
                  fs::perm_options::add);
  EXPECT_TRUE(IsProgram(folder / "a-text-of-ours"));
  EXPECT_TRUE(HaveProgram("sh"));
  ASSERT_EQ(setenv("PATH", before.c_str(), 1), 0);
}

}  // namespace
}  // namespace softmoe
