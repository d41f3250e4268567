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
  // Copies between host and device once all work launched before has finished.
  void (*copy)(void* to, const void* from, size_t bytes);
};

// Wraps the kernels `device` so that they take host pointers. Every array has
// exactly the size that the kernels' headers document. A call throws
// NumericsError if the kernel writes outside an array or into an input.
template <typename Activation>
RowKernelsOf<Activation> MirroredKernels(const RowKernelsOf<Activation>& device,
                                         const DeviceMemory& memory);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_MIRRORED_KERNELS_H_
