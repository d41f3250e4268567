// SPDX-License-Identifier: Apache-2.0
//
// double_implementation.h - the bodies of our kernels (CPU and CUDA alike),
// instantiated at double, as "cpu:double", where no float error hides a wrong
// epsilon or a wrong formula. Where kernels multiply matrices, it uses plain
// loops.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DOUBLE_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DOUBLE_IMPLEMENTATION_H_

#include <memory>

#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"

namespace softmoe::verify {

// `adapters` must outlive the result.
std::unique_ptr<Implementation> MakeDoubleImplementation(
    const Adapters& adapters);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DOUBLE_IMPLEMENTATION_H_
