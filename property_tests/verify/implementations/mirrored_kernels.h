// SPDX-License-Identifier: Apache-2.0
//
// mirrored_kernels.h - wraps kernels that take device pointers as kernels that
// take host pointers: every array is copied to the device, between canaries,
// and back.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_MIRRORED_KERNELS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_MIRRORED_KERNELS_H_

#include <cstddef>

#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// The memory that the kernels use.
struct DeviceMemory {
  void* (*allocate)(size_t bytes);
  void (*free)(void* memory);
  // Copies between host and device, after everything that was launched before
  // has finished.
  void (*copy)(void* to, const void* from, size_t bytes);
};

// The kernels `device`, to be called with host pointers. Every array has
// exactly the size that the kernels' headers document. Throws NumericsError if
// a call writes outside an array, or into an input.
template <typename Activation>
RowKernelsOf<Activation> MirroredKernels(const RowKernelsOf<Activation>& device,
                                         const DeviceMemory& memory);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_MIRRORED_KERNELS_H_
