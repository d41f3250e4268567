// SPDX-License-Identifier: Apache-2.0
//
// message_test_util.h - checks of text that a user reads: messages of errors,
// the output of programs, and whole reports.
//
//   EXPECT_TRUE(Says(MessageOf<DataError>([&] { Read(path); }),
//                    path.string(), "restore this one"));
#ifndef SOFTMOE_CORE_TESTING_MESSAGE_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_MESSAGE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.h"
#include "core/process/process.h"

namespace softmoe {

// The result of MessageOf if nothing is thrown; no message is the same.
inline constexpr char kNoError[] = "(no error)";

// Runs `action` and returns the message of the ErrorType that it throws, or
// kNoError. Exceptions of other types escape, and so fail the test.
template <typename ErrorType, typename Action>
std::string MessageOf(Action&& action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return kNoError;
}

// Does the same for an Error with this exit code.
template <typename Action>
std::string MessageOf(ExitCode code, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() != code) throw;
    return error.what();
  }
  return kNoError;
}

// Whether `text` contains each of `parts`, in any order. If not, the failure
// shows the missing ones and the text.
::testing::AssertionResult Says(std::string_view text,
                                const std::vector<std::string>& parts);
template <std::convertible_to<std::string_view>... Parts>
::testing::AssertionResult Says(std::string_view text, const Parts&... parts) {
  return Says(text, std::vector<std::string>{std::string(parts)...});
}

// Whether a program ended with this exit status and its output says `parts`, as
// above.
template <typename... Parts>
::testing::AssertionResult EndedWith(const ProgramResult& result,
                                     int exit_status, const Parts&... parts) {
  if (result.exit_status == exit_status) return Says(result.output, parts...);
  return ::testing::AssertionFailure() << "exit status " << result.exit_status
                                       << ", not " << exit_status << "\n"
                                       << result.output;
}

// Returns how often `text` contains `part`, without overlaps.
int Count(std::string_view text, std::string_view part);

// Returns `text` with the first `from`, which must be there, replaced.
std::string Replaced(std::string text, std::string_view from,
                     std::string_view to);

// Whether `text` is the content of a file of this repository, given by its path
// from the root ("golden/verdict/testdata/verdicts.txt") and among the test's
// data. If not, the failure shows the lines that differ, as `diff -u` does.
//
// With SOFTMOE_RENEW=1 in the environment of `./bazelw run ROOM:test`, the file
// is written instead, among the sources: CONTRIBUTING.md.
::testing::AssertionResult EqualsFile(const std::string& text,
                                      const std::string& path);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_MESSAGE_TEST_UTIL_H_
