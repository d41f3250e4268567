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

// RowKernelsOf<Activation> of namespace kernels::isa. (A namespace cannot be a
// template argument.)
#define SOFTMOE_DEVICE_KERNELS(isa, Activation)        \
  ::softmoe::verify::MirroredKernels<Activation>(      \
      {                                                \
          SOFTMOE_ON_DEVICE(isa, RouterForward),       \
          SOFTMOE_ON_DEVICE(isa, RouterBackward),      \
          SOFTMOE_ON_DEVICE(isa, RmsNormForward),      \
          SOFTMOE_ON_DEVICE(isa, RmsNormBackward),     \
          SOFTMOE_ON_DEVICE(isa, AdamW),               \
          SOFTMOE_ON_QUEUE(isa, Gemm),                 \
          SOFTMOE_ON_QUEUE(isa, ExpertForward),        \
          SOFTMOE_ON_QUEUE(isa, ExpertBackward),       \
          SOFTMOE_ON_QUEUE(isa, AttentionForward),     \
          SOFTMOE_ON_QUEUE(isa, AttentionBackward),    \
          SOFTMOE_ON_QUEUE(isa, HeadCrossEntropy),     \
          SOFTMOE_ON_DEVICE(isa, SumOfSquares),        \
          SOFTMOE_ON_DEVICE(isa, EmbeddingForward),    \
          SOFTMOE_ON_DEVICE(isa, EmbeddingBackward),   \
          SOFTMOE_ON_DEVICE(isa, Add),                 \
          SOFTMOE_ON_DEVICE(isa, Rope),                \
          SOFTMOE_ON_DEVICE(isa, InputJitter),         \
          SOFTMOE_ON_DEVICE(isa, InputJitter),         \
          SOFTMOE_ON_DEVICE(isa, LogitNoise),          \
          SOFTMOE_ON_DEVICE(isa, BuildRoutePlan),      \
          SOFTMOE_ON_DEVICE(isa, GatherGateGradients), \
          SOFTMOE_ON_DEVICE(isa, RoutingCounts),       \
          SOFTMOE_ON_DEVICE(isa, BalanceLoss),         \
          SOFTMOE_ON_DEVICE(isa, BudgetGradient),      \
          SOFTMOE_ON_DEVICE(isa, CastToBf16),          \
          SOFTMOE_ON_DEVICE(isa, CastToFloat),         \
      },                                               \
      {::softmoe::kernels::isa::AllocateOnDevice,      \
       ::softmoe::kernels::isa::FreeOnDevice,          \
       ::softmoe::kernels::isa::CopyAcrossDevice})

#define SOFTMOE_ON_DEVICE(isa, Name)                                        \
  [](const auto& args) {                                                    \
    ::softmoe::kernels::isa::Name(args,                                     \
                                  ::softmoe::kernels::isa::DeviceStream()); \
  }

// A workspace that the simulated device need not poison for long.
#define SOFTMOE_ON_QUEUE(isa, Name)                                      \
  [](const auto& args) {                                                 \
    const auto queue = ::softmoe::kernels::isa::MakeQueue(               \
        ::softmoe::kernels::isa::DeviceStream(), /*workspace=*/1 << 16); \
    ::softmoe::kernels::isa::Name(args, *queue);                         \
  }

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_
