// SPDX-License-Identifier: Apache-2.0
//
// Compiled for each backend of a device, as backend_model.cc is.
#include "optimized/gpu_device.h"

#include "kernels/cuda/device_facts.h"
#include "optimized/backend.h"
#include "optimized/backend_model.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

class GpuDevice : public Device {
 public:
  GpuDevice()
      : facts_(device::RequireDevice()),
        queue_(device::MakeQueue(device::DeviceStream())) {}

  DeviceIdentity identity() const override {
    return {.isa = facts_.architecture,
            .backend = facts_.backend,
            .model = facts_.model,
            .libraries = facts_.libraries};
  }
  std::unique_ptr<ModelInterface> MakeModel(const Config& config,
                                            int64_t group_sequences,
                                            ThreadPool& /*pool*/,
                                            Recompute recompute) override {
    return SOFTMOE_BACKEND::MakeModel(config, group_sequences, *queue_,
                                      recompute);
  }

 private:
  kernels::DeviceFacts facts_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace

std::unique_ptr<Device> MakeGpuDevice() {
  return std::make_unique<GpuDevice>();
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
