// SPDX-License-Identifier: Apache-2.0
//
// ptx_implementation.h - what nvcc makes of our CUDA source, executed without a
// GPU (kernels/simt/ptx), as "ptx", and with bf16 activations as "ptx:bf16".
// Everything else is as in "shim": the simulated device, the matrix products.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_PTX_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_PTX_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "kernels/simt/ptx/ptx_device.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"

namespace softmoe::verify {

// activations: "" or "bf16". Throws ConfigError. `adapters` must outlive the
// result.
std::unique_ptr<Implementation> MakePtxImplementation(
    const std::string& activations, const Adapters& adapters);

// Why there is no PTX beside this program; "" if there is.
std::string WhyNoPtx();

// The PTX, read at the first call; counts what all implementations execute.
ptx::PtxDevice& Ptx();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_PTX_IMPLEMENTATION_H_
