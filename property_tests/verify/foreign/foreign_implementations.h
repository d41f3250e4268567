// SPDX-License-Identifier: Apache-2.0
//
// foreign_implementations.h - other people's implementations: a program
// ("serve:PATH"), a shared library ("lib:PATH"), and results that some
// framework has already computed ("recorded:VECTORS,OUTPUTS"). README.md is for
// people who write one; FORMAT.md says what the files hold.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_FOREIGN_IMPLEMENTATIONS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_FOREIGN_IMPLEMENTATIONS_H_

#include <memory>
#include <string>

#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

// The largest number of seconds that an option takes: the clock counts
// nanoseconds in 64 bits, which last for 9e9 seconds.
inline constexpr double kMaxSeconds = 1e9;

// Seconds that one call may take: `verify --timeout`. A file of several calls
// has more. This is a setting of the whole program, because implementations are
// made from their names alone.
inline double& CallSeconds() {
  static double seconds = 60;
  return seconds;
}

// The program is started once and answers one file of cases after another.
// Throws EnvironmentError if the file does not exist, and ConfigError if it
// cannot be a program.
std::unique_ptr<Implementation> MakeServeImplementation(
    const std::string& path);

// The library is called through the C ABI of softmoe_verify_abi.h. Throws
// EnvironmentError if the file does not exist, and ConfigError if it cannot be
// loaded, lacks one of the functions, or is of another ABI version.
std::unique_ptr<Implementation> MakeLibImplementation(const std::string& path);

// Looks up recorded outputs for a file of conformance vectors; nothing runs.
// `verify check-vectors` judges them, and a REPRO line names them. Throws
// ConfigError for anything but two paths, EnvironmentError if a file does not
// exist, and DataError if it has other contents than it should.
std::unique_ptr<Implementation> MakeRecordedImplementation(
    const std::string& paths);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_FOREIGN_IMPLEMENTATIONS_H_
