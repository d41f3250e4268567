// SPDX-License-Identifier: Apache-2.0
//
// diagnose.h - what a failure looks like: tries a dozen hypotheses, one
// sentence each, on the numbers. A hint says where to look; it proves nothing.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_DIAGNOSE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_DIAGNOSE_H_

#include <string>
#include <vector>

#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

// The hints for `output`, the most telling first; empty if nothing fits. Runs
// `implementation` again, to see whether it is deterministic, and whether
// earlier calls leave traces.
std::vector<std::string> Diagnose(const Operation& op, const Case& c,
                                  const Evidence& evidence,
                                  const std::string& output,
                                  Implementation& implementation);

// The hints that follow from the numbers alone.
std::vector<std::string> DiagnoseValues(const Case& c, const TensorMap& inputs,
                                        const Tensor& got,
                                        const ExpectedOutput& expected);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_DIAGNOSE_H_
