// SPDX-License-Identifier: Apache-2.0
//
// explain.h - explains an operation, a case or a bound, in words and numbers.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_EXPLAIN_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_EXPLAIN_H_

#include <string>

#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

// Operations, fills, implementations and faults; the parameters of each
// operation with their ranges.
std::string ListText();

// The inputs of a case as CheckCase saw it, the ranges of the values and bounds
// of each output, the derivations, and the verdict on the implementation.
std::string ExplainText(const CaseResult& result, const Evidence& seen);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_EXPLAIN_H_
