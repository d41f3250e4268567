// SPDX-License-Identifier: Apache-2.0
#include "core/errors.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "core/failure.h"
#include "core/stoppable_output.h"

namespace softmoe {
namespace {

// If a standard descriptor is closed (`>&-`), the next file that is opened
// takes its number, and printed text would land in that file.
void OccupyStandardDescriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    // open() takes the lowest free number, which is this one.
    [[maybe_unused]] const int opened = open("/dev/null", O_RDWR);
  }
}

void PrintFailure(const std::string& program, const Error& failure) {
  // The exit code must say why the program ends, even if nobody reads stderr
  // any more.
  std::signal(SIGPIPE, SIG_IGN);
  // A requested stop is not an error.
  const char* kind = failure.code() == ExitCode::kStopped ? "stopped" : "error";
  // The last message waits longer for a slow reader than the lines before it.
  PrintUnlessStopped(stderr,
                     program + ": " + kind + ": " + failure.what() + "\n",
                     std::chrono::seconds(1));
}

}  // namespace

Error CurrentFailure() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return EnvironmentError(
        "out of memory; use a smaller model or shorter sequences, or a machine "
        "with more memory");
  } catch (const std::filesystem::filesystem_error& error) {
    return EnvironmentError(std::string(error.what()) +
                            "; check the path and its permissions");
  } catch (const std::system_error& error) {
    // Thrown by fmt::print, or by a thread that could not be started.
    return EnvironmentError(std::string(error.what()) +
                            "; look at the disk that the output goes to, and "
                            "at the limits of this shell (ulimit -a)");
  } catch (const std::exception& error) {
    return InternalError(std::string("internal error: ") + error.what());
  } catch (...) {
    return InternalError("internal error: an exception of an unknown type");
  }
}

namespace internal {

int RunMain(const std::string& program, ExitCode (*call)(const void* body),
            const void* body) {
  OccupyStandardDescriptors();
  // Exceeding a limit on file sizes (ulimit -f) must fail the write instead of
  // killing this process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Whoever started this process may have ignored SIGCHLD. The system would
  // then forget how a child ended, and a crash could not be told from success.
  std::signal(SIGCHLD, SIG_DFL);
  try {
    const ExitCode code = call(body);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      const EnvironmentError unwritten(
          "not all of the output could be written to stdout; free disk space, "
          "or direct it elsewhere");
      if (code == ExitCode::kDone) throw unwritten;
      // A full disk must not hide a worse verdict.
      PrintFailure(program, unwritten);
    }
    return static_cast<int>(code);
  } catch (...) {
    const Error failure = CurrentFailure();
    PrintFailure(program, failure);
    return static_cast<int>(failure.code());
  }
}

// Takes file and line, since clang 14 lacks std::source_location.
CheckText::CheckText(const char* condition, const char* file, int line) {
  *this << file << ":" << line << ": check failed: " << condition << " ";
}

// Prints `value` as std::ostream does.
void CheckText::Append(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  text_ += text;
}

void ThrowCheck::operator&(const CheckText& text) const {
  throw InternalError(text.text());
}

}  // namespace internal
}  // namespace softmoe
