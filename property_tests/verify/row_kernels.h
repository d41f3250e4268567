// SPDX-License-Identifier: Apache-2.0
//
// row_kernels.h - the kernels that exist both for the CPU and as CUDA source,
// whoever runs them; and the operations on them (kernel_*.cc).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ROW_KERNELS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ROW_KERNELS_H_

#include <functional>

#include "kernels/adamw.h"
#include "kernels/rmsnorm.h"
#include "kernels/router.h"
#include "property_tests/verify/case.h"
#include "property_tests/verify/tensor.h"

namespace softmoe::verify {

struct RowKernels {
  std::function<void(const kernels::RouterForwardArgs&)> router_forward;
  std::function<void(const kernels::RouterBackwardArgs&)> router_backward;
  std::function<void(const kernels::RmsNormForwardArgs&)> rmsnorm_forward;
  std::function<void(const kernels::RmsNormBackwardArgs&)> rmsnorm_backward;
  std::function<void(const kernels::AdamWArgs&)> adamw;
};

// Returns null for an operation that is not one of them.
using RowRunner = TensorMap (*)(const Case& c, const TensorMap& inputs,
                                const RowKernels& run);
RowRunner FindRowRunner(const std::string& op);

TensorMap RunLapSum(const Case& c, const TensorMap& inputs,
                    const RowKernels& run);
TensorMap RunRouter(const Case& c, const TensorMap& inputs,
                    const RowKernels& run);
TensorMap RunBalanceSums(const Case& c, const TensorMap& inputs,
                         const RowKernels& run);
TensorMap RunRmsNorm(const Case& c, const TensorMap& inputs,
                     const RowKernels& run);
// The host's part of the optimizer is done by the adapter, without the norm; on
// the CPU the optimizer itself runs instead (cpu_step.cc).
TensorMap RunAdamW(const Case& c, const TensorMap& inputs,
                   const RowKernels& run);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ROW_KERNELS_H_
