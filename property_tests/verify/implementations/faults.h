// SPDX-License-Identifier: Apache-2.0
//
// faults.h - implementations with a planted fault: "faulty:FAULT:OUTPUT:BASE"
// computes with BASE and then spoils OUTPUT. They prove that the harness finds,
// shrinks and explains what it should, and they show a user what a failure
// looks like.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_FAULTS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_FAULTS_H_

#include <memory>
#include <string>
#include <vector>

#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

struct FaultInfo {
  std::string name, text;
};
const std::vector<FaultInfo>& Faults();

// `argument` is FAULT:OUTPUT:BASE. Throws ConfigError, with a suggestion, if it
// is not.
std::unique_ptr<Implementation> MakeFaultyImplementation(
    const std::string& argument);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_FAULTS_H_
