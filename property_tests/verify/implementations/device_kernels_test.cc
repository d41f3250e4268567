// SPDX-License-Identifier: Apache-2.0
//
// The queues on which products of an operation run: on a device, as in models.
#include "property_tests/verify/implementations/device_kernels.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/device/device.h"

namespace softmoe::verify {
namespace {

using kernels::Queue;

// The queue of a process is made once, and belongs to nobody.
static_assert(std::is_same_v<decltype(product_queue::isa_cuda::Get()), Queue*>);

TEST(DeviceKernels, OfADeviceHaveTheWorkspacesOfModels) {
  constexpr auto kGet = QueueOfProcess<kernels::isa_shim::DeviceStream,
                                       kernels::isa_shim::MakeQueue>;
  const size_t before = simt::LiveBytes();
  // Owned here, because later tests may need that no memory lives.
  const std::unique_ptr<Queue> queue(kGet());
  EXPECT_EQ(simt::LiveBytes() - before,
            size_t{1 + Queue::kSides} * kernels::kProductWorkspace);
  EXPECT_EQ(kGet(), queue.get());
  EXPECT_EQ(queue->stream(), kernels::isa_shim::DeviceStream());
}

TEST(DeviceKernels, OfTheSimulatedDeviceLeaveNothing) {
  const int before = simt::LiveAllocations();
  EXPECT_NE(product_queue::isa_shim::Get(), nullptr);
  EXPECT_EQ(simt::LiveAllocations(), before);
}

}  // namespace
}  // namespace softmoe::verify
