// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a Device; apart from device.cc, so that programs that train only
// on the CPU link no CUDA.
#include <cstdint>
#include <limits>

#include "kernels/isa.h"
#include "optimized/backend_model.h"
#include "optimized/device.h"

namespace softmoe::optimized {
namespace {

class CpuDevice : public Device {
 public:
  DeviceIdentity identity() const override {
    return {.isa = kernels::IsaName(kernels::ActiveIsa()),
            .backend = {},
            .model = {},
            .libraries = {}};
  }
  std::unique_ptr<Model> MakeModel(const Config& config,
                                   int64_t group_sequences, ThreadPool& pool,
                                   Recompute recompute,
                                   Communicator* communicator) override {
    return backend_cpu::MakeBackendModel(config, group_sequences, pool,
                                         recompute, communicator);
  }
  int64_t FreeMemory() const override {
    return std::numeric_limits<int64_t>::max();
  }
  // Every rank has its own threads.
  int count() const override { return std::numeric_limits<int>::max(); }
  std::string id() const override { return {}; }
  std::string WhyNoLink() const override {
    return "NCCL is for ranks on devices, but these ranks are on the CPU; "
           "train on devices (--device=cuda)";
  }
  std::unique_ptr<Device> OfRank(int /*rank*/) const override {
    return std::make_unique<CpuDevice>();
  }
};

}  // namespace

std::unique_ptr<Device> MakeCpuDevice() {
  return std::make_unique<CpuDevice>();
}

Device& Cpu() {
  static CpuDevice cpu;
  return cpu;
}

}  // namespace softmoe::optimized
