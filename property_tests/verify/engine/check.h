// SPDX-License-Identifier: Apache-2.0
//
// check.h - runs one case on one implementation and judges every output.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CHECK_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CHECK_H_

#include <functional>

#include "property_tests/verify/engine/case_result.h"
#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

// One way of checking a case: CheckCase below, CheckGradients
// (gradient_check.h).
using Checker = std::function<CaseResult(const Case&, Implementation&)>;

// Generates the data and checks the case after one call with other data of the
// same shape, of which no trace may show. Throws EnvironmentError, and
// InternalError if the harness contradicts itself; anything else that the
// implementation throws is a FAIL.
CaseResult CheckCase(const Case& c, Implementation& implementation,
                     Evidence* evidence = nullptr);

// The same with given data (a replay bundle), and without an earlier call.
CaseResult CheckInputs(const Case& c, const TensorMap& inputs,
                       Implementation& implementation,
                       Evidence* evidence = nullptr);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CHECK_H_
