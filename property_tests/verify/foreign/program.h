// SPDX-License-Identifier: Apache-2.0
//
// program.h - runs someone else's program on a file of cases.
//
// The program is started once and given a pair of files on every line of its
// stdin, which it answers with a line "done"; after a crash it is started
// again. It runs in the user's working directory, in a process group of its
// own, without a terminal, and is killed when its time is up; whatever it does,
// this process goes on.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_

#include <filesystem>
#include <optional>
#include <string>

#include "core/process/process.h"

namespace softmoe::verify {

class Program {
 public:
  explicit Program(std::filesystem::path path);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Has the program read `cases` and write `outputs`, whose content is not
  // checked here. Throws RunFailure if it crashes, ends with a status other
  // than 0, or is not done after `seconds`, and EnvironmentError if it cannot
  // be started.
  void Call(const std::filesystem::path& cases,
            const std::filesystem::path& outputs, double seconds);

 private:
  void Start();
  // Reads what the program prints, for at most `milliseconds`; returns false
  // once it has closed its stdout and stderr.
  bool Listen(int milliseconds);
  bool IsDone() const;  // its last whole line is "done"
  std::string EndText() const;
  std::string LastWords() const;

  std::filesystem::path path_;
  std::optional<Process> process_;  // while it may run
  std::string said_, complained_;   // the ends of stdout and stderr
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_
