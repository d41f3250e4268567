// SPDX-License-Identifier: Apache-2.0
//
// run_kernel.h - runs a kernel at once, on memory of the caller's: for tests of
// the simulator itself, without the device around it (../device).
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_RUN_KERNEL_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_RUN_KERNEL_H_

#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {

// Returns null, or what is wrong, valid until the next grid.
template <typename... Parameters, typename... Arguments>
const char* RunKernel(const Grid& grid, void (*kernel)(Parameters...),
                      Arguments... arguments) {
  // Each thread gets its own copy of the arguments, as on a device.
  auto call = [&] { kernel(Parameters(arguments)...); };
  kernel_argument = &call;
  return RunGrid(grid,
                 [] { (*static_cast<decltype(call)*>(kernel_argument))(); });
}

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_RUN_KERNEL_H_
