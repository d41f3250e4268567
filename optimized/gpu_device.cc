// SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each kind of device, as backend_model.cc is for each of a
// device's two backends, fp32 and bf16.
#include <string>

#include "core/errors.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/rank_link.h"
#include "optimized/backend.h"
#include "optimized/backend_model.h"
#include "optimized/buffer.h"
#include "optimized/device.h"
#include "optimized/product.h"

namespace softmoe::optimized {

// Defined by the other backend of the same device.
inline namespace SOFTMOE_BF16_BACKEND {
std::unique_ptr<Model> MakeBackendModel(const Config& config,
                                        int64_t group_sequences, Queue& queue,
                                        Recompute recompute,
                                        Communicator* communicator);
}

inline namespace SOFTMOE_BACKEND {
namespace {

static_assert(kProductWorkspaces ==
              (1 + Queue::kSides) * kernels::kProductWorkspace);

int NumberOf(int rank) { return rank % device::RequireDevices(); }

// Enqueues a product of zeros.
template <typename Operand, typename Result>
void MultiplyZeros(Queue& queue, const Buffer<float>& zeros,
                   const Buffer<float>& result) {
  constexpr int64_t kSize = 16;
  const auto* operand = reinterpret_cast<const Operand*>(zeros.data());
  queue.Multiply(kernels::ProductOf(
      DenseProduct(operand, operand, reinterpret_cast<Result*>(result.data()),
                   {.m = kSize, .n = kSize, .k = kSize})));
}

// Runs one product of each kind that models have. cuBLASLt loads code for the
// first of a kind: load it before anyone asks how much memory is free.
void WarmUp(Queue& queue) {
  const Buffer<float> zeros(256), result(256);
  ClearArray(queue, zeros.size(), zeros.data());
  MultiplyZeros<float, float>(queue, zeros, result);
  MultiplyZeros<kernels::Bf16, float>(queue, zeros, result);
  MultiplyZeros<kernels::Bf16, kernels::Bf16>(queue, zeros, result);
  Finish(queue);
}

class GpuDevice : public Device {
 public:
  explicit GpuDevice(int rank)
      : facts_(device::RequireDevice(NumberOf(rank))),
        stream_(device::MakeStream()),
        queue_(device::MakeQueue(stream_.get())) {
    WarmUp(*queue_);
  }

  DeviceIdentity identity() const override {
    return {.isa = facts_.architecture,
            .backend = facts_.backend,
            .model = facts_.model,
            .libraries = facts_.libraries};
  }
  std::unique_ptr<Model> MakeModel(const Config& config,
                                   int64_t group_sequences,
                                   ThreadPool& /*pool*/, Recompute recompute,
                                   Communicator* communicator) override {
    const auto make_model = config.training.precision == Precision::kFp32
                                ? &SOFTMOE_BACKEND::MakeBackendModel
                                : &SOFTMOE_BF16_BACKEND::MakeBackendModel;
    return make_model(config, group_sequences, *queue_, recompute,
                      communicator);
  }
  int64_t FreeMemory() const override { return FreeBytes(); }
  int count() const override { return facts_.count; }
  std::string id() const override { return facts_.id; }
  std::string WhyNoLink() const override { return device::WhyNoLink(); }
  std::unique_ptr<Device> OfRank(int rank) const override {
    auto other = std::make_unique<GpuDevice>(rank);
    RequireSameKind(other->facts_, rank % facts_.count);
    return other;
  }

 private:
  void RequireSameKind(const kernels::DeviceFacts& other, int number) const {
    if (other.model == facts_.model &&
        other.architecture == facts_.architecture) {
      return;
    }
    throw EnvironmentError(
        "device " + std::to_string(number) + " is a " + other.model + " (" +
        other.architecture + "), but another one is a " + facts_.model + " (" +
        facts_.architecture +
        "): ranks on them would compute different bits; choose devices of one "
        "kind with CUDA_VISIBLE_DEVICES");
  }

  struct FreeStream {
    void operator()(CUstream_st* stream) const { device::FreeStream(stream); }
  };

  kernels::DeviceFacts facts_;
  std::unique_ptr<CUstream_st, FreeStream> stream_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace

std::unique_ptr<Device> MakeGpuDevice(int rank) {
  return std::make_unique<GpuDevice>(rank);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized
