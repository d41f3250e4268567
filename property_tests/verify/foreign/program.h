// SPDX-License-Identifier: Apache-2.0
//
// program.h - somebody's program in a process of its own, which reads and
// writes files, each with a deadline.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "core/process/process.h"

namespace softmoe::verify {

// The program is started once and given a pair of files on every line of its
// stdin, to which it answers with a line "done"; once it has ended, it is
// started again. It runs in the user's working directory, in a process group of
// its own, without a terminal, and is killed when its time is up. Whatever it
// does, this process goes on.
class Program {
 public:
  explicit Program(std::filesystem::path path);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Has the program read `cases` and write `outputs`, whose content is not
  // checked here. Throws RunFailure if the program crashes, ends without an
  // answer or with a status other than 0, or does not finish the `calls` of the
  // file in time, EnvironmentError if it cannot be started, and StoppedError
  // after a signal. Says so on stderr if they take longer than a single one
  // may. After "done", CheckEnd reports how it ends. If it ended with 0 after
  // an earlier answer, a new process is given the file that it did not read.
  void Call(const std::filesystem::path& cases,
            const std::filesystem::path& outputs, size_t calls);

  // Closes its stdin and gives it two seconds to end by itself.
  void Finish();

  // Throws RunFailure, once, if it has crashed or ended with a status other
  // than 0 after an answer.
  void CheckEnd();

 private:
  void Start();
  void AwaitEnd();
  void NoteEnd(const std::string& end);  // of one that had answered
  // Lets go of the program, which has ended. Returns "" if its status is 0, and
  // otherwise a sentence.
  std::string Leave();
  // Reads what the program prints, for at most `milliseconds`; returns false
  // once it has closed its stdout and stderr.
  bool Listen(int milliseconds);
  bool IsDone() const;  // its last whole line is "done"
  std::string EndText() const;
  std::string LastWords() const;

  std::filesystem::path path_;
  std::optional<Process> process_;  // while it may run
  std::string said_, complained_;   // the ends of stdout and stderr
  std::string bad_end_;             // after an answer; until CheckEnd
  bool has_answered_ = false;       // any file yet
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_
