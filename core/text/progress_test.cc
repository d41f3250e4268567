// SPDX-License-Identifier: Apache-2.0
#include "core/text/progress.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "core/stoppable_output.h"

namespace softmoe {
namespace {

TEST(FormatDuration, ShowsTwoUnits) {
  EXPECT_EQ(FormatDuration(0), "0s");
  EXPECT_EQ(FormatDuration(59.4), "59s");
  EXPECT_EQ(FormatDuration(59.6), "1m00");
  EXPECT_EQ(FormatDuration(187), "3m07");
  EXPECT_EQ(FormatDuration(6480), "1h48");
  EXPECT_EQ(FormatDuration(183600), "2d03h");
  EXPECT_EQ(FormatDuration(std::nan("")), "?");
  EXPECT_EQ(FormatDuration(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(FormatDuration(-1), "?");
}

// A clock that the test moves.
struct Fixture {
  double now = 100;
  std::ostringstream out;
  ProgressOptions Options(int columns) {
    ProgressOptions options;
    options.print = [this](const std::string& text) { out << text; };
    options.clock = [this] { return now; };
    options.terminal_columns = columns;
    return options;
  }
};

TEST(Progress, WithoutATerminalPrintsPlainLinesNowAndThen) {
  Fixture f;
  Progress progress("step", 10, 0, f.Options(0));
  for (int step = 1; step <= 10; ++step) {
    f.now += 4;
    progress.Update(step, "loss " + std::to_string(10 - step));
  }
  // The first, every 10 s (so every third step of 4 s), and the last.
  EXPECT_EQ(f.out.str(),
            "step 1/10 | loss 9 | eta 36s\n"
            "step 4/10 | loss 6 | eta 24s\n"
            "step 7/10 | loss 3 | eta 12s\n"
            "step 10/10 | loss 0 | took 40s\n");
}

TEST(Progress, ResumedUnitsDoNotCountForTheSpeed) {
  Fixture f;
  Progress progress("step", 100, 90, f.Options(0));
  f.now += 5;
  progress.Update(91);
  EXPECT_EQ(f.out.str(), "step 91/100 | eta 45s\n");
}

TEST(Progress, OnATerminalRewritesOneLine) {
  Fixture f;
  {
    Progress progress("row", 3, 0, f.Options(80));
    f.now += 1;
    progress.Update(1);
    f.now += 0.01;  // too soon
    progress.Update(1, "not shown");
    progress.Note("a note");
    f.now += 1;
    progress.Update(2);
  }
  EXPECT_EQ(f.out.str(), "row 1/3 | eta 2s\r\x1b[Ka note\nrow 2/3 | eta 1s\n");
}

TEST(Progress, OnATerminalLinesNeverWrap) {
  Fixture f;
  {
    Progress progress("row", 3, 0, f.Options(20));
    progress.Update(1, std::string(100, 'x'));
  }
  EXPECT_EQ(f.out.str(), "row 1/3 | xxxxxxxxx\n");  // 19 columns
}

TEST(Progress, ShowsLinesOfTheCallersOwn) {
  Fixture log;
  {
    Progress progress("row", 3, 0, log.Options(0));
    progress.Show("first", true);
    progress.Show("second", false);
    progress.Show("third", true);
  }
  EXPECT_EQ(log.out.str(), "first\nthird\n");
  Fixture terminal;
  {
    Progress progress("row", 3, 0, terminal.Options(10));
    progress.Show("first", false);
    progress.Show("too soon", true);
    terminal.now += 1;
    progress.Show("a line that is cut", true);
    progress.Note("note");
  }
  EXPECT_EQ(terminal.out.str(), "first\r\x1b[Ka line th\r\x1b[Knote\n");
}

// If a stop waited for a reader of stderr, this test would not end.
TEST(Progress, OnStderrNoReaderHoldsAStop) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  internal::stop_signal = SIGTERM;
  {
    ProgressOptions options;
    options.terminal_columns = 80;
    Progress progress("row", 1, 0, options);
    progress.Note(std::string(1 << 20, 'x'));
    progress.Show("a line that is left open", false);
  }
  internal::stop_signal = 0;
  dup2(before, STDERR_FILENO);
  for (const int descriptor : {before, ends[0], ends[1]}) close(descriptor);
}

TEST(Progress, QuietPrintsNothing) {
  Fixture f;
  ProgressOptions options = f.Options(0);
  options.quiet = true;
  Progress progress("row", 1, 0, options);
  progress.Note("note");
  progress.Show("line", true);
  progress.Update(1);
  EXPECT_EQ(f.out.str(), "");
}

}  // namespace
}  // namespace softmoe
