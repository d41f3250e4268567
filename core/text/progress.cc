// SPDX-License-Identifier: Apache-2.0
#include "core/text/progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/stoppable_output.h"

namespace softmoe {
namespace {

// Returns the number of columns if stderr is a terminal, else 0.
int TerminalColumns() {
  if (!isatty(STDERR_FILENO)) return 0;
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string FormatDuration(double seconds) {
  if (!(seconds >= 0) || !(seconds < 1e15)) return "?";
  const auto total = static_cast<int64_t>(std::llround(seconds));
  const int64_t minutes = total / 60, hours = minutes / 60, days = hours / 24;
  if (minutes == 0) return fmt::format("{}s", total);
  if (hours == 0) return fmt::format("{}m{:02}", minutes, total % 60);
  if (days == 0) return fmt::format("{}h{:02}", hours, minutes % 60);
  return fmt::format("{}d{:02}h", days, hours % 24);
}

Progress::Progress(std::string task, int64_t total, int64_t already_done,
                   ProgressOptions options)
    : task_(std::move(task)),
      total_(total),
      first_done_(already_done),
      options_(std::move(options)) {
  if (options_.terminal_columns < 0) {
    options_.terminal_columns = options_.print ? 0 : TerminalColumns();
  }
  if (!options_.print) {
    options_.print = [](const std::string& text) {
      PrintUnlessStopped(stderr, text);
    };
  }
  if (!options_.clock) options_.clock = &SteadySeconds;
  start_ = last_print_ = options_.clock();
}

Progress::~Progress() {
  if (line_open_) options_.print("\n");
}

void Progress::Update(int64_t done, const std::string& details) {
  const double now = options_.clock();
  const bool terminal = options_.terminal_columns > 0;
  const double pause = terminal ? options_.terminal_seconds : options_.seconds;
  const bool last = done >= total_;
  if (printed_ && !last && now - last_print_ < pause) return;

  std::string line = fmt::format("{} {}/{}", task_, done, total_);
  if (!details.empty()) line += " | " + details;
  if (last) {
    line += " | took " + FormatDuration(now - start_);
  } else if (done > first_done_) {
    const double per_unit =
        (now - start_) / static_cast<double>(done - first_done_);
    line += " | eta " +
            FormatDuration(per_unit * static_cast<double>(total_ - done));
  }
  Print(line, !terminal || last);
  last_print_ = now;
  printed_ = true;
}

void Progress::Note(const std::string& line) { Print(line, true); }

void Progress::Show(const std::string& line, bool in_logs) {
  if (options_.terminal_columns <= 0) {
    if (in_logs) Note(line);
    return;
  }
  const double now = options_.clock();
  if (printed_ && now - last_print_ < options_.terminal_seconds) return;
  Print(line, false);
  last_print_ = now;
  printed_ = true;
}

void Progress::Print(const std::string& line, bool stays) {
  if (options_.quiet) return;
  std::string text;
  // Goes back to the start of the line and clears what a longer one left there.
  if (line_open_) text = "\r\x1b[K";
  if (stays) {
    text += line + "\n";
  } else {
    // A line that wraps cannot be rewritten. The cut may split a character of
    // several bytes; the next line repairs that.
    text += line.substr(
        0, static_cast<size_t>(std::max(1, options_.terminal_columns - 1)));
  }
  options_.print(text);
  line_open_ = !stays;
}

}  // namespace softmoe
