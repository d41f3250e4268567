// SPDX-License-Identifier: Apache-2.0
#include "core/process/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/errors.h"
#include "core/stoppable_output.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

// Returns how a child process that runs `body` ends, as waitpid reports it.
int StatusOfChild(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(StopSignal, TheFirstSignalOnlySetsTheFlag) {
  for (const auto& [number, name] :
       {std::pair{SIGINT, "SIGINT"}, std::pair{SIGTERM, "SIGTERM"},
        std::pair{SIGHUP, "SIGHUP"}}) {
    StopSignal stop;
    EXPECT_FALSE(stop.requested());
    EXPECT_EQ(stop.name(), "");
    stop.ThrowIfRequested("nothing happens");
    raise(number);
    EXPECT_TRUE(stop.requested());
    EXPECT_EQ(stop.name(), name);
    EXPECT_EQ(
        MessageOf<StoppedError>([&] { stop.ThrowIfRequested("state saved"); }),
        std::string(name) + ": state saved");
  }
}

TEST(StopSignal, TheSecondSignalEndsTheProcessAtOnce) {
  for (const auto& [first, second] :
       {std::pair{SIGINT, SIGINT}, std::pair{SIGINT, SIGTERM}}) {
    const int status = StatusOfChild([first = first, second = second] {
      StopSignal stop;
      raise(first);
      if (!stop.requested()) _exit(1);
      raise(second);
      _exit(2);
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), second);
  }
}

// The kernel, the shell and the session manager may all send a signal.
TEST(StopSignal, AClosingTerminalIsOneRequest) {
  for (const int other : {SIGTERM, SIGINT}) {
    const int status = StatusOfChild([other] {
      StopSignal stop;
      raise(SIGHUP);
      raise(SIGHUP);
      raise(other);
      raise(SIGHUP);
      if (stop.name() != (other == SIGINT ? "SIGINT" : "SIGTERM")) _exit(1);
      raise(SIGTERM);
      _exit(2);
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
  }
}

// `timeout` signals the process, and at once its group; after Ctrl-C it passes
// that on. raise() is as immediate as a terminal.
TEST(StopSignal, WhatAProgramPassesOnIsOneRequest) {
  const int status = StatusOfChild([] {
    for (const bool terminal : {false, true}) {
      const StopSignal stop;
      terminal ? raise(SIGTERM) : kill(getpid(), SIGTERM);
      kill(getpid(), SIGTERM);
      kill(getpid(), SIGINT);
      if (stop.name() != "SIGTERM") _exit(1);
    }
    const StopSignal stop;
    kill(getpid(), SIGTERM);
    raise(SIGINT);
    _exit(2);
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST(StopSignal, UnderNohupATerminalMayClose) {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    const StopSignal stop;
    raise(SIGHUP);
    EXPECT_FALSE(stop.requested());
  }
  EXPECT_EQ(signal(SIGHUP, before), SIG_IGN);
}

TEST(StopSignal, APipeThatNobodyReadsIsNotTheEndMeanwhile) {
  const int status = StatusOfChild([] {
    {
      const StopSignal stop;
      const StopSignal inner;
      raise(SIGPIPE);
      if (stop.requested()) _exit(1);
    }
    raise(SIGPIPE);
    _exit(2);
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGPIPE);
}

TEST(StopSignal, NestedObjectsShareTheFlagUntilTheLastIsGone) {
  StopSignal outer;
  {
    StopSignal inner;
    raise(SIGTERM);
    EXPECT_TRUE(inner.requested());
  }
  EXPECT_TRUE(outer.requested());
  StopSignal later;  // does not forget what the outermost knows
  EXPECT_TRUE(later.requested());
}

// Messages after the end of the last object must not wait for a reader either.
TEST(StopSignal, IsKnownUntilTheNextOne) {
  {
    const StopSignal stop;
    raise(SIGTERM);
  }
  EXPECT_EQ(internal::stop_signal, SIGTERM);
  const StopSignal next;
  EXPECT_EQ(internal::stop_signal, 0);
}

TEST(StopSignal, RestoresWhatWasThereBefore) {
  static int calls = 0;
  const auto old = signal(SIGINT, [](int) { ++calls; });
  { StopSignal stop; }
  raise(SIGINT);
  EXPECT_EQ(calls, 1);
  signal(SIGINT, old);
}

}  // namespace
}  // namespace softmoe
