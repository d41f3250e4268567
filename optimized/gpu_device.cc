// SPDX-License-Identifier: Apache-2.0
//
// Compiled for each kind of device, as backend_model.cc is for each of its
// backends, which are two: of fp32 and of bf16.
#include "optimized/gpu_device.h"

#include "kernels/cuda/device_facts.h"
#include "optimized/backend.h"
#include "optimized/backend_model.h"

namespace softmoe::optimized {

// The same device's other backend.
inline namespace SOFTMOE_BF16_BACKEND {
std::unique_ptr<ModelInterface> MakeModel(const Config& config,
                                          int64_t group_sequences, Queue& queue,
                                          Recompute recompute);
}

inline namespace SOFTMOE_BACKEND {
namespace {

static_assert(kProductWorkspaces ==
              (1 + Queue::kSides) * kernels::kProductWorkspace);

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
    const auto make_model = config.training.precision == Precision::kFp32
                                ? &SOFTMOE_BACKEND::MakeModel
                                : &SOFTMOE_BF16_BACKEND::MakeModel;
    return make_model(config, group_sequences, *queue_, recompute);
  }
  int64_t FreeMemory() const override { return FreeBytes(); }

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
