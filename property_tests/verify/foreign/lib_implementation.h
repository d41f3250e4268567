// SPDX-License-Identifier: Apache-2.0
//
// lib_implementation.h - runs someone else's shared library, as "lib:PATH",
// through the C ABI of softmoe_verify_abi.h.
//
// The library lives in a forked process that serves one call after another: if
// it crashes, hangs or exits, the case fails and this program goes on.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

// Throws EnvironmentError if the file does not exist, and ConfigError if it is
// not a library, lacks one of the functions, or is of another ABI version.
std::unique_ptr<Implementation> MakeLibImplementation(const std::string& path);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_LIB_IMPLEMENTATION_H_
