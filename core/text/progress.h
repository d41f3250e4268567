// SPDX-License-Identifier: Apache-2.0
//
// progress.h - one line about a long task: how far it is and how long it will
// take.
//
// On a terminal the line is rewritten in place; elsewhere (a log, CI) a plain
// line is printed at intervals. On stderr it waits for a reader only until a
// stop is requested (core/stoppable_output.h).
#ifndef SOFTMOE_CORE_TEXT_PROGRESS_H_
#define SOFTMOE_CORE_TEXT_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace softmoe {

// "42s", "3m07", "1h48", "2d03h"; "?" unless 0 <= seconds < 1e15.
std::string FormatDuration(double seconds);

// The default clock, which never goes back; its origin is arbitrary.
double SteadySeconds();

struct ProgressOptions {
  bool quiet = false;   // prints nothing
  double seconds = 10;  // between plain lines
  double terminal_seconds = 0.1;
  // For tests; by default, stderr.
  std::function<void(const std::string&)> print;
  std::function<double()> clock;  // seconds, monotone
  int terminal_columns = -1;      // 0: not a terminal; -1: ask, if of stderr
};

// Prints "TASK DONE/TOTAL | DETAILS | eta 1h48".
class Progress {
 public:
  // `already_done` units were done before (a resumed run). They count as done,
  // but not towards the speed.
  Progress(std::string task, int64_t total, int64_t already_done = 0,
           ProgressOptions options = {});
  ~Progress();  // leaves the cursor on a fresh line

  // `done` of `total` units are finished. Prints only when a line is due, but
  // always for the first and the last unit.
  void Update(int64_t done, const std::string& details = "");
  // Prints a line that stays, between the progress lines.
  void Note(const std::string& line);
  // Shows a progress line of the caller's own. On a terminal it is rewritten
  // when one is due; elsewhere it is printed if `in_logs`.
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
  bool line_open_ = false;  // the cursor is after a rewritable line
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_PROGRESS_H_
