// SPDX-License-Identifier: Apache-2.0
//
// recorded_implementation.h - what someone else's framework computed for a file
// of conformance vectors, as "recorded:VECTORS,OUTPUTS". It runs nothing, but
// looks up outputs. `verify check-vectors` judges it, and a REPRO line names
// it.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_RECORDED_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_RECORDED_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

// Throws ConfigError for anything but two paths, EnvironmentError for a file
// that does not exist, and DataError for one that is not what it should be.
std::unique_ptr<Implementation> MakeRecordedImplementation(
    const std::string& paths);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_FOREIGN_RECORDED_IMPLEMENTATION_H_
