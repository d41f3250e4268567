// SPDX-License-Identifier: Apache-2.0
#include "core/stoppable_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

namespace softmoe {
namespace {

// A stream into a pipe of one page, and the reader's end of it.
class StoppableOutput : public testing::Test {
 protected:
  void SetUp() override { internal::stop_signal = 0; }
  void TearDown() override {
    internal::stop_signal = 0;
    // Closes the reader first: fclose flushes, and nobody would read that.
    if (reader_ >= 0) close(reader_);
    if (out_ != nullptr) std::fclose(out_);
  }

  void OpenPipe() {
    std::array<int, 2> ends;
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    reader_ = ends[0];
    out_ = fdopen(ends[1], "w");
  }
  // Prints `text`, and meanwhile reads it, from `delay` on.
  std::string ReadBack(const std::string& text,
                       std::chrono::milliseconds delay) {
    std::jthread printing([&] { PrintUnlessStopped(out_, text); });
    std::this_thread::sleep_for(delay);
    std::string got;
    std::array<char, 1000> some;
    while (got.size() < text.size()) {
      const ssize_t size = read(reader_, some.data(), some.size());
      if (size <= 0) break;
      got.append(some.data(), static_cast<size_t>(size));
    }
    return got;
  }
  // Prints `text`, asks for a stop once that waits, and returns when it ends.
  void StopMeanwhile(const std::string& text) {
    std::jthread printing([&] { PrintUnlessStopped(out_, text); });
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    internal::stop_signal = SIGTERM;
  }

  int reader_ = -1;
  std::FILE* out_ = nullptr;
};

// The same with a terminal instead of a pipe. A bare chroot has no terminals.
class StoppableTerminal : public StoppableOutput {
 protected:
  void SetUp() override {
    StoppableOutput::SetUp();
    reader_ = posix_openpt(O_RDWR | O_NOCTTY);
    if (reader_ < 0) GTEST_SKIP() << "no terminals here (/dev/ptmx)";
    ASSERT_EQ(grantpt(reader_) + unlockpt(reader_), 0);
    const int end = open(ptsname(reader_), O_RDWR | O_NOCTTY);
    ASSERT_GE(end, 0);
    out_ = fdopen(end, "w");
  }
};

TEST_F(StoppableOutput, WaitsForAReaderAndLosesNothing) {
  OpenPipe();
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "\n";
  EXPECT_EQ(ReadBack(text, std::chrono::milliseconds(200)), text);
  // A reader that reads gets the whole text even after the request.
  internal::stop_signal = SIGTERM;
  EXPECT_EQ(ReadBack(text, std::chrono::milliseconds(0)), text);
  EXPECT_FALSE(std::ferror(out_));
}

TEST_F(StoppableOutput, WhatWasPrintedBeforeComesFirst) {
  OpenPipe();
  std::fputs("first, ", out_);
  PrintUnlessStopped(out_, "second\n");
  std::array<char, 100> got;
  EXPECT_EQ(std::string(got.data(), static_cast<size_t>(
                                        read(reader_, got.data(), got.size()))),
            "first, second\n");
}

// If nothing were dropped, this test would not end.
TEST_F(StoppableOutput, APipeThatNobodyReadsHoldsNoStop) {
  OpenPipe();
  StopMeanwhile(std::string(10000, 'x') + "\n");
  const auto start = std::chrono::steady_clock::now();
  PrintUnlessStopped(out_, "asked before\n", std::chrono::milliseconds(300));
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(290));
  EXPECT_EQ(fcntl(fileno(out_), F_GETFL) & O_NONBLOCK, 0);
}

// A terminal may have room for part of a line, but not for its end.
TEST_F(StoppableTerminal, ThatNobodyReadsHoldsNoStop) {
  std::string lines;
  for (int i = 0; i < 100000; ++i) lines += "a line\n";
  StopMeanwhile(lines);
  EXPECT_EQ(fcntl(fileno(out_), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(StoppableTerminal, HeldByCtrlSHoldsNoStop) {
  termios settings = {};
  ASSERT_EQ(tcgetattr(fileno(out_), &settings), 0);
  settings.c_iflag |= IXON;
  ASSERT_EQ(tcsetattr(fileno(out_), TCSANOW, &settings), 0);
  const char held = '\x13', free = '\x11';
  ASSERT_EQ(write(reader_, &held, 1), 1);
  StopMeanwhile("a line\n");
  ASSERT_EQ(write(reader_, &free, 1), 1);
  internal::stop_signal = 0;
  PrintUnlessStopped(out_, "another\n");
  std::array<char, 100> got;
  EXPECT_EQ(std::string(got.data(), static_cast<size_t>(
                                        read(reader_, got.data(), got.size()))),
            "another\r\n");
}

TEST_F(StoppableOutput, WhatCannotBeWrittenIsKnown) {
  out_ = std::fopen("/dev/full", "w");
  PrintUnlessStopped(out_, "text\n");
  EXPECT_TRUE(std::ferror(out_));
  std::fclose(out_);
  OpenPipe();
  close(std::exchange(reader_, -1));
  const auto before = signal(SIGPIPE, SIG_IGN);
  PrintUnlessStopped(out_, "text\n");
  EXPECT_TRUE(std::ferror(out_));
  std::fclose(std::exchange(out_, nullptr));
  signal(SIGPIPE, before);
}

}  // namespace
}  // namespace softmoe
