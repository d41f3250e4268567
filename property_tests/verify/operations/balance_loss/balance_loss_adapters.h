// SPDX-License-Identifier: Apache-2.0
//
// balance_loss_adapters.h - the adapter of the losses to kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_LOSS_BALANCE_LOSS_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_LOSS_BALANCE_LOSS_ADAPTERS_H_

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

TensorMap RunBalanceLoss(const Case& c, const TensorMap& inputs,
                         const RowKernels& run);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_BALANCE_LOSS_BALANCE_LOSS_ADAPTERS_H_
