// SPDX-License-Identifier: Apache-2.0
//
// device_kernels.h - the kernels of kernels/cuda, on a device or a simulated
// one, to be called with host pointers.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_

#include "kernels/cuda/device.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/row_kernels.h"
#include "property_tests/verify/implementations/mirrored_kernels.h"

// RowKernels of namespace kernels::isa. (A namespace is no template argument.)
#define SOFTMOE_DEVICE_KERNELS(isa)                  \
  ::softmoe::verify::MirroredKernels(                \
      {                                              \
          SOFTMOE_ON_DEVICE(isa, RouterForward),     \
          SOFTMOE_ON_DEVICE(isa, RouterBackward),    \
          SOFTMOE_ON_DEVICE(isa, RmsNormForward),    \
          SOFTMOE_ON_DEVICE(isa, RmsNormBackward),   \
          SOFTMOE_ON_DEVICE(isa, AdamW),             \
          SOFTMOE_ON_DEVICE(isa, SumOfSquares),      \
          SOFTMOE_ON_DEVICE(isa, EmbeddingForward),  \
          SOFTMOE_ON_DEVICE(isa, EmbeddingBackward), \
      },                                             \
      {::softmoe::kernels::isa::AllocateOnDevice,    \
       ::softmoe::kernels::isa::FreeOnDevice,        \
       ::softmoe::kernels::isa::CopyAcrossDevice})

#define SOFTMOE_ON_DEVICE(isa, Name)                                        \
  [](const auto& args) {                                                    \
    ::softmoe::kernels::isa::Name(args,                                     \
                                  ::softmoe::kernels::isa::DeviceStream()); \
  }

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_
