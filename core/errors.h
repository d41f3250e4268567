// SPDX-License-Identifier: Apache-2.0
//
// errors.h - how every part of the project fails: one exception family, and
// the one table of exit codes (DESIGN.md, ruling 1).
//
// A message names the place (file:line:column of the user's file, key, path or
// tensor element) and ends with the remedy. Library code throws; only a main()
// turns an error into text and an exit code, through RunMain.
#ifndef SOFTMOE_CORE_ERRORS_H_
#define SOFTMOE_CORE_ERRORS_H_

#include <stdexcept>
#include <string>
#include <type_traits>

namespace softmoe {

enum class ExitCode : int {
  kDone = 0,           // done, and all that was asked to hold holds
  kFailed = 1,         // something was checked and failed
  kUsage = 2,          // usage, configuration, or a damaged input file
  kNotComparable = 3,  // nothing failed, but the runs cannot be compared
  kInconclusive = 4,   // nothing failed, but the evidence does not decide
  kEnvironment = 5,    // no device, missing file, disk full, missing package
  kSelfCheck = 6,      // the harness's own self-check failed
  kMistrusted = 7,     // passed only on data too degenerate to mean anything
  kStopped = 75,       // stopped by a signal, state saved
};

// Base of all exceptions of the project: a message, and the exit code of a
// program that does not handle it.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// A configuration, command line or grid that cannot be what the user meant.
struct ConfigError : Error {
  explicit ConfigError(const std::string& message)
      : Error(ExitCode::kUsage, message) {}
};

// An input file that is damaged, truncated, or of another kind or version.
struct DataError : Error {
  explicit DataError(const std::string& message)
      : Error(ExitCode::kUsage, message) {}
};

// The machine lacks something: a file, disk space, a device, a package.
struct EnvironmentError : Error {
  explicit EnvironmentError(const std::string& message)
      : Error(ExitCode::kEnvironment, message) {}
};

// A value that is not a number where one is needed (names the element).
struct NumericsError : Error {
  explicit NumericsError(const std::string& message)
      : Error(ExitCode::kFailed, message) {}
};

// The state was saved and the program should end because of a signal.
struct StoppedError : Error {
  explicit StoppedError(const std::string& message)
      : Error(ExitCode::kStopped, message) {}
};

// A broken promise between parts of this program: our own bug.
struct InternalError : Error {
  explicit InternalError(const std::string& message)
      : Error(ExitCode::kSelfCheck, message) {}
};

// What every source of the project includes is kept short: no <functional> for
// RunMain, and no <sstream> for SOFTMOE_CHECK.
namespace internal {

int RunMain(const std::string& program, ExitCode (*call)(const void* body),
            const void* body);

// The text streamed into a failed SOFTMOE_CHECK: of texts, paths and numbers.
class CheckText {
 public:
  CheckText(const char* condition, const char* file, int line);

  template <typename T>
  CheckText& operator<<(const T& value) {
    static_assert(!std::is_enum_v<T>, "give its name, or its number");
    if constexpr (std::is_floating_point_v<T>) {
      Append(static_cast<double>(value));
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, char>) {
      text_ += std::to_string(value);
    } else {
      text_ += value;
    }
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void Append(double value);

  std::string text_;
};

// `ThrowCheck() & text` throws InternalError: & binds less tightly than <<, so
// it comes when the text is complete.
struct ThrowCheck {
  [[noreturn]] void operator&(const CheckText& text) const;
};

}  // namespace internal

// Runs body(), which returns an ExitCode, prints an escaping exception as
// "PROGRAM: error: ..." on stderr and returns its exit code. Output that cannot
// be written (a full disk at the end of stdout) is such an error if everything
// else succeeded.
template <typename Body>
int RunMain(const std::string& program, const Body& body) {
  return internal::RunMain(
      program,
      [](const void* own) { return (*static_cast<const Body*>(own))(); },
      &body);
}

}  // namespace softmoe

// SOFTMOE_CHECK(rows > 0) << "rows=" << rows;  throws InternalError. For
// promises inside the program; a user's mistakes have errors of their own.
#define SOFTMOE_CHECK(condition)        \
  if (condition) [[likely]] {           \
  } else                                \
    ::softmoe::internal::ThrowCheck() & \
        ::softmoe::internal::CheckText(#condition, __FILE__, __LINE__)

#endif  // SOFTMOE_CORE_ERRORS_H_
