// SPDX-License-Identifier: Apache-2.0
//
// shim_implementation.h - our CUDA source on a simulated device
// (kernels/simt/device), as "shim". Its schedules are orders of the simulated
// threads and of queued work, which must all give the same bits.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SHIM_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SHIM_IMPLEMENTATION_H_

#include <memory>

#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// `adapters` must outlive the result.
std::unique_ptr<Implementation> MakeShimImplementation(
    const Adapters& adapters);

// The kernels themselves, under the schedule that was last set; to be called
// with host pointers.
RowKernels SimulatedKernels();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SHIM_IMPLEMENTATION_H_
