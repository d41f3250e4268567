// SPDX-License-Identifier: Apache-2.0
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CUDA_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CUDA_IMPLEMENTATION_H_

#include <memory>

#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"

namespace softmoe::verify {

// Our CUDA kernels on device 0 of this machine: "cuda". Where there is no
// device, or the program was built without the CUDA toolkit, every operation is
// UNSUPPORTED and says so: not run, never passed. Each case runs twice and must
// give the same bits. After an illegal address the device is lost to this
// process, and all that follows fails too: look at the first failure. `adapters` must outlive what
// is returned.
std::unique_ptr<Implementation> MakeCudaImplementation(
    const Adapters& adapters);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CUDA_IMPLEMENTATION_H_
