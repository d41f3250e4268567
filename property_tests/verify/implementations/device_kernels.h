// SPDX-License-Identifier: Apache-2.0
//
// device_kernels.h - the kernels of kernels/cuda, on a device or a simulated
// one, to be called with host pointers.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_

#include <memory>

#include "kernels/cuda/device.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/noise_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/cuda/row_kernels.h"
#include "property_tests/verify/implementations/mirrored_kernels.h"

namespace softmoe::verify {

// The one queue of the process, with the workspaces that models have, so that
// products take the same algorithms as in models. It is never destroyed, since
// the device may not answer when the process ends.
template <auto TheStream, auto Make>
kernels::Queue* QueueOfProcess() {
  static kernels::Queue* const queue =
      Make(TheStream(), kernels::kProductWorkspace).release();
  return queue;
}

// The queues for products, by where the products run.
namespace product_queue {
namespace isa_cuda {
inline kernels::Queue* Get() {
  return QueueOfProcess<kernels::isa_cuda::DeviceStream,
                        kernels::isa_cuda::MakeQueue>();
}
}  // namespace isa_cuda
namespace isa_shim {
// One queue per call, since no memory may live between cases that run in the
// simulator (ForgetFreedMemory); small, since all of it is poisoned.
inline std::unique_ptr<kernels::Queue> Get() {
  return kernels::isa_shim::MakeQueue(kernels::isa_shim::DeviceStream(),
                                      /*workspace=*/1 << 16);
}
}  // namespace isa_shim
}  // namespace product_queue

}  // namespace softmoe::verify

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

#define SOFTMOE_DEVICE_OnQueue(isa, Name)                            \
  [](const auto& args) {                                             \
    const auto queue = ::softmoe::verify::product_queue::isa::Get(); \
    ::softmoe::kernels::isa::Name(args, *queue);                     \
  }

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_KERNELS_H_
