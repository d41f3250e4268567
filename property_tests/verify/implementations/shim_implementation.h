// SPDX-License-Identifier: Apache-2.0
//
// shim_implementation.h - our CUDA source on a simulated device
// (kernels/simt/device), as "shim", and with bf16 activations as "shim:bf16".
// Its schedules are orders of the simulated threads and of queued work, which
// must all give the same bits.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SHIM_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SHIM_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"

namespace softmoe::verify {

// activations: "" or "bf16". Throws ConfigError. `adapters` must outlive the
// result.
std::unique_ptr<Implementation> MakeShimImplementation(
    const std::string& activations, const Adapters& adapters);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SHIM_IMPLEMENTATION_H_
