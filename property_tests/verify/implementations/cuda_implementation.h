// SPDX-License-Identifier: Apache-2.0
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CUDA_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CUDA_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"

namespace softmoe::verify {

// Our CUDA kernels on device 0 of this machine: "cuda", and with bf16
// activations "cuda:bf16". Without a device, or if the program was built
// without the CUDA toolkit, every operation is reported as UNSUPPORTED: not
// run, and never passed. Each case runs twice and must give the same bits.
// After an illegal address this process can no longer use the device, so
// everything that follows fails too: look at the first failure. activations: ""
// or "bf16". Throws ConfigError. `adapters` must outlive the result.
std::unique_ptr<Implementation> MakeCudaImplementation(
    const std::string& activations, const Adapters& adapters);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CUDA_IMPLEMENTATION_H_
