// SPDX-License-Identifier: Apache-2.0
//
// process.h - other programs, started without a shell.
#ifndef SOFTMOE_CORE_PROCESS_PROCESS_H_
#define SOFTMOE_CORE_PROCESS_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe {

// How a program is started.
struct ProcessOptions {
  // stdin is empty, or is what Send writes.
  enum class Input { kEmpty, kPipe };
  // Where stdout and stderr go: to Listen, separately or as one, or to a file,
  // which is emptied first.
  enum class Output { kApart, kTogether, kFile };

  // The first is the program: a path, or a name that is found in PATH.
  std::vector<std::string> arguments;
  std::filesystem::path folder = ".";  // where it stands
  // "NAME=value" for each variable; nullopt means the environment of this
  // process.
  std::optional<std::vector<std::string>> environment;
  Input input = Input::kEmpty;
  Output output = Output::kTogether;
  std::filesystem::path output_file;  // for kFile
  // Whether it gets a process group, and default actions for SIGINT, SIGTERM
  // and SIGXFSZ: Ctrl-C reaches this process only, and Kill also reaches what
  // the program has started.
  bool own_group = false;
};

class Process {
 public:
  enum class Stream { kOutput, kErrors };
  using Sink = std::function<void(Stream, std::string_view bytes)>;

  // Throws EnvironmentError if the program cannot be started.
  explicit Process(const ProcessOptions& options);
  ~Process();  // kills it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Writes to stdin. Returns false if not all bytes could be written because
  // the program has ended, or has not read for `seconds`.
  bool Send(std::string_view bytes, double seconds);
  void CloseInput();
  // Waits for output, at most `milliseconds` (negative: forever), and passes it
  // to `sink`, as kOutput if both outputs are one. Returns false once both are
  // closed by the program and by every process that inherited them.
  bool Listen(int milliseconds, const Sink& sink);
  // Passes all output to `sink`, until both are closed, and waits for the end.
  void ListenToEnd(const Sink& sink);

  // Whether the program has ended; does not wait.
  bool HasEnded();
  // Waits for the program to end, at most `seconds` (infinity: as long as it
  // takes). Returns false if it is still running. Does not read its output, so
  // call it only if the output goes to a file or has been read.
  bool Wait(double seconds);
  // Kills the program, with its group if it has one, and waits at most
  // `seconds`: what hangs in a driver may not end. Returns false if it did not
  // end; it then counts as ended in an unknown way.
  bool Kill(double seconds = 10);

  // For a program that has ended: the signal that ended it; 0 if none did. Both
  // functions throw EnvironmentError if nobody knows the end: Kill has given
  // up, or this process ignores SIGCHLD (RunMain resets it).
  int Signal() const;
  // What the program returned, or 128 + signal, as in a shell.
  int ExitStatus() const;

 private:
  // Whether the program has ended; `flags` are those of waitid.
  bool SeeEnd(int flags);

  pid_t child_ = -1;
  bool own_group_;
  bool ended_ = false;
  bool lost_ = false;  // ended, nobody knows how
  int status_ = 0;
  int input_ = -1;                         // -1: closed
  std::array<int, 2> outputs_ = {-1, -1};  // of stdout and stderr
};

// The environment of this process, as "NAME=value".
std::vector<std::string> Environment();

// The outcome of a program that ran to its end.
struct ProgramResult {
  int exit_status = 0;  // 128 + signal if a signal ended it
  std::string output;   // stdout and stderr together, in English (LC_ALL=C)
};

// Runs `arguments` (the first is the program, found in PATH) in `folder`,
// with an empty stdin, and waits for its end. Output beyond 1 MiB is dropped.
// `own_group`: as in ProcessOptions. Throws EnvironmentError if the program
// cannot be started.
ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder,
                         bool own_group = false);

// Whether `path` is a program, i.e. a file that may be executed.
bool IsProgram(const std::filesystem::path& path);

// Whether `program` is in PATH.
bool HaveProgram(const std::string& program);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_PROCESS_PROCESS_H_
