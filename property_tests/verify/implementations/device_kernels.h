// SPDX-License-Identifier: Apache-2.0
//
// device_kernels.h - the kernels of kernels/cuda, on a device or a simulated
// one, to be called with host pointers.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_

#include "kernels/cuda/device.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/noise_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/cuda/row_kernels.h"
#include "property_tests/verify/implementations/mirrored_kernels.h"

// RowKernelsOf<Activation> of namespace kernels::isa. (A namespace is no
// template argument.)
#define SOFTMOE_DEVICE_KERNELS(isa, Activation)      \
  ::softmoe::verify::MirroredKernels<Activation>(    \
      {SOFTMOE_KERNELS(SOFTMOE_DEVICE_KERNEL, isa)}, \
      {::softmoe::kernels::isa::AllocateOnDevice,    \
       ::softmoe::kernels::isa::FreeOnDevice,        \
       ::softmoe::kernels::isa::CopyAcrossDevice})

#define SOFTMOE_DEVICE_KERNEL(isa, name, Name, where, ...) \
  SOFTMOE_DEVICE_##where(isa, Name),

#define SOFTMOE_DEVICE_OnStream(isa, Name)                                  \
  [](const auto& args) {                                                    \
    ::softmoe::kernels::isa::Name(args,                                     \
                                  ::softmoe::kernels::isa::DeviceStream()); \
  }
#define SOFTMOE_DEVICE_DeviceOnly(isa, Name) SOFTMOE_DEVICE_OnStream(isa, Name)

// A workspace that the simulated device need not poison for long.
#define SOFTMOE_DEVICE_OnQueue(isa, Name)                                \
  [](const auto& args) {                                                 \
    const auto queue = ::softmoe::kernels::isa::MakeQueue(               \
        ::softmoe::kernels::isa::DeviceStream(), /*workspace=*/1 << 16); \
    ::softmoe::kernels::isa::Name(args, *queue);                         \
  }

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_
