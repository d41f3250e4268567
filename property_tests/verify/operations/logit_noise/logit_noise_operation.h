// SPDX-License-Identifier: Apache-2.0
//
// logit_noise_operation.h - scores with normal noise (SPEC.md 2.4).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LOGIT_NOISE_LOGIT_NOISE_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LOGIT_NOISE_LOGIT_NOISE_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   scores_before [rows, num_experts], sigma []
// outputs  scores [rows, num_experts]
const Operation& LogitNoiseOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_LOGIT_NOISE_LOGIT_NOISE_OPERATION_H_
