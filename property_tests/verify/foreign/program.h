// SPDX-License-Identifier: Apache-2.0
//
// program.h - runs somebody else's program on a file of cases.
//
// Once per file, as `PROGRAM CASES OUTPUTS`; or started once and told one pair
// of files per line of its stdin, to which it answers with a line "done". It
// runs where the user stands, in a process group of its own, without a
// terminal, and is killed when its time is over; whatever it does, this process
// goes on.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/process/process.h"

namespace softmoe::verify {

class Program {
 public:
  enum class Style { kOnce, kServe };

  Program(std::filesystem::path path, Style style);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Has the program read `cases` and write `outputs`, whose content is not
  // looked at. Throws RunFailure if it crashes, ends with another status than
  // 0, or is not done after `seconds`; EnvironmentError if it cannot be
  // started.
  void Call(const std::filesystem::path& cases,
            const std::filesystem::path& outputs, double seconds);

 private:
  void Start(const std::vector<std::string>& arguments);
  // Reads what the program says, for at most `milliseconds`; false once it has
  // closed its outputs.
  bool Listen(int milliseconds);
  bool IsDone() const;  // its last whole line is "done"
  std::string EndText() const;
  std::string LastWords() const;

  std::filesystem::path path_;
  Style style_;
  std::optional<Process> process_;  // while it may run
  std::string said_, complained_;   // the last of stdout, stderr
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_PROGRAM_H_
