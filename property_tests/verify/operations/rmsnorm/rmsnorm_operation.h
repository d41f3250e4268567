// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm_operation.h - RMSNorm and its gradients (SPEC.md 3.2).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_RMSNORM_RMSNORM_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_RMSNORM_RMSNORM_OPERATION_H_

#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {

// inputs   x, d_y, d_x_before [rows, d_model]; weight [d_model]; epsilon []
// outputs  y, d_x [rows, d_model] (d_x_before is added), d_weight [d_model],
//          rstd [rows] (optional)
const Operation& RmsNormOperation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_RMSNORM_RMSNORM_OPERATION_H_
