// SPDX-License-Identifier: Apache-2.0
//
// serve_implementation.h - runs someone else's program, as "serve:PATH", which
// is started once and answers one file of cases after another. README.md is for
// people who write such a program; FORMAT.md says what the files hold.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SERVE_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SERVE_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

// Throws EnvironmentError if the file does not exist, and ConfigError if it
// cannot be a program.
std::unique_ptr<Implementation> MakeServeImplementation(
    const std::string& path);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_SERVE_IMPLEMENTATION_H_
