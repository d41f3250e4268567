// SPDX-License-Identifier: Apache-2.0
//
// progress.h - one line about a long task: how far, how long still.
//
// On a terminal the line is rewritten in place; elsewhere (a log, CI) it is a
// plain line every so many seconds.
#ifndef SOFTMOE_CORE_TEXT_PROGRESS_H_
#define SOFTMOE_CORE_TEXT_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace softmoe {

// "42s", "3m07", "1h48", "2d03h"; "?" unless 0 <= seconds < infinity.
std::string FormatDuration(double seconds);

// A clock that never goes back, from some begin: the default of tasks here.
double SteadySeconds();

struct ProgressOptions {
  std::ostream* out = nullptr;  // nullptr: std::cerr
  bool quiet = false;           // prints nothing
  double seconds = 10;          // between plain lines
  double terminal_seconds = 0.1;
  // For tests; by default asked of the system about stderr.
  std::function<double()> clock;  // seconds, monotone
  int terminal_columns = -1;      // 0: not a terminal; -1: ask
};

// Prints "TASK DONE/TOTAL | DETAILS | eta 1h48".
class Progress {
 public:
  // `already_done` units were there before (a resumed run): they count as
  // done, but not for the speed.
  Progress(std::string task, int64_t total, int64_t already_done = 0,
           ProgressOptions options = {});
  ~Progress();  // leaves the cursor on a fresh line

  // `done` of `total` units are ready. Prints only when it is time to, but
  // always the first and the last unit.
  void Update(int64_t done, const std::string& details = "");
  // A line that stays, between the progress lines.
  void Note(const std::string& line);
  // A progress line of the caller's own. On a terminal it is rewritten, when it
  // is time to; elsewhere it is printed if it is meant for logs.
  void Show(const std::string& line, bool in_logs);

 private:
  void Print(const std::string& line, bool stays);

  std::string task_;
  int64_t total_;
  int64_t first_done_;
  ProgressOptions options_;
  double start_;
  double last_print_;
  bool printed_ = false;
  bool line_open_ = false;  // the cursor is behind a rewritable line
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_PROGRESS_H_
