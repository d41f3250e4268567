// SPDX-License-Identifier: Apache-2.0
//
// device_backend.h - the backend of a CUDA device, and of the simulated one:
// see backend.h, which includes it. SOFTMOE_DEVICE is the namespace of the
// kernels, isa_cuda or isa_shim.
//
// An operation has run when the queue has come to it; the host waits in Finish,
// ReadArray and WriteArray alone.
#ifndef SOFTMOE_OPTIMIZED_DEVICE_BACKEND_H_
#define SOFTMOE_OPTIMIZED_DEVICE_BACKEND_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/noise_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/rmsnorm.h"
#include "kernels/router.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

namespace device = ::softmoe::kernels::SOFTMOE_DEVICE;

using Queue = kernels::Queue;

namespace ops {

// Kernels need the queue's stream only.
#define SOFTMOE_KERNEL(Name)                                        \
  inline void Name(const kernels::Name##Args& args, Queue& queue) { \
    device::Name(args, queue.stream());                             \
  }                                                                 \
  static_assert(true)

SOFTMOE_KERNEL(AdamW);
SOFTMOE_KERNEL(Add);
SOFTMOE_KERNEL(BalanceLoss);
SOFTMOE_KERNEL(BudgetGradient);
SOFTMOE_KERNEL(BuildRoutePlan);
SOFTMOE_KERNEL(EmbeddingBackward);
SOFTMOE_KERNEL(EmbeddingForward);
SOFTMOE_KERNEL(GatherGateGradients);
SOFTMOE_KERNEL(InputJitter);
SOFTMOE_KERNEL(LogitNoise);
SOFTMOE_KERNEL(RmsNormBackward);
SOFTMOE_KERNEL(RmsNormForward);
SOFTMOE_KERNEL(Rope);
SOFTMOE_KERNEL(RouterBackward);
SOFTMOE_KERNEL(RouterForward);
SOFTMOE_KERNEL(RoutingCounts);
SOFTMOE_KERNEL(SumOfSquares);

#undef SOFTMOE_KERNEL

using device::AttentionBackward;
using device::AttentionForward;
using device::ExpertBackward;
using device::ExpertForward;
using device::Gemm;
using device::HeadCrossEntropy;

}  // namespace ops

inline void* AllocateArray(size_t bytes) {
  return device::AllocateOnDevice(bytes);
}
inline void FreeArray(void* array) noexcept { device::FreeOnDevice(array); }

inline void WaitFor(Queue& queue) noexcept {
  device::WaitForStream(queue.stream());
}
inline void Finish(Queue& queue) { device::FinishStream(queue.stream()); }

template <typename T>
void CopyArray(Queue& queue, int64_t size, const T* source, T* target) {
  device::CopyOnDevice(target, source, static_cast<size_t>(size) * sizeof(T),
                       queue.stream());
}
template <typename T>
void ClearArray(Queue& queue, int64_t size, T* x) {
  device::ClearOnDevice(x, static_cast<size_t>(size) * sizeof(T),
                        queue.stream());
}
template <typename T>
void WriteArray(Queue& queue, std::span<const T> values, T* target) {
  device::CopyAcross(target, values.data(), values.size_bytes(),
                     queue.stream());
}
template <typename T>
void ReadArray(Queue& queue, const T* source, std::span<T> values) {
  device::CopyAcross(values.data(), source, values.size_bytes(),
                     queue.stream());
}

template <typename T, typename Buffer>
T* OutputOnBackend(Queue& /*queue*/, std::span<T> array, Buffer* copy) {
  const int64_t size = static_cast<int64_t>(array.size());
  if (copy->size() < size) *copy = Buffer(size);
  return copy->data();
}
// Memory that grows, without what it held. Whoever makes it grow has waited for
// what uses it.
template <typename T, void* (*kAllocate)(size_t), void (*kFree)(void*) noexcept>
class GrowingArray {
 public:
  T* OfSize(size_t size) {
    if (size > size_) {
      data_.reset();
      data_.reset(static_cast<T*>(kAllocate(size * sizeof(T))));
      size_ = size;
    }
    return data_.get();
  }
  T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const { kFree(data); }
  };
  std::unique_ptr<T[], Free> data_;
  size_t size_ = 0;
};
template <typename T>
using HostArray = GrowingArray<T, device::AllocateOnHost, device::FreeOnHost>;
template <typename T>
using DeviceArray =
    GrowingArray<T, device::AllocateOnDevice, device::FreeOnDevice>;

template <typename T>
class SentArray {
 public:
  const T* Send(Queue& queue, std::span<const T> values) {
    T* staged = staged_.OfSize(values.size());
    std::ranges::copy(values, staged);
    T* copy = copy_.OfSize(values.size());
    device::StartCopy(copy, staged, values.size_bytes(), queue.stream());
    return copy;
  }

 private:
  HostArray<T> staged_;
  DeviceArray<T> copy_;
};

template <typename T>
class FetchedArray {
 public:
  void Start(Queue& queue, const T* array, int64_t size) {
    size_ = static_cast<size_t>(size);
    device::StartCopy(copy_.OfSize(size_), array, size_ * sizeof(T),
                      queue.stream());
  }
  std::span<const T> view() const { return {copy_.data(), size_}; }

 private:
  HostArray<T> copy_;
  size_t size_ = 0;
};

// Queries whose attention weights are held at a time, and tokens whose logits
// are: 256 MiB of them, or 64 tokens'.
inline int64_t QueryBlock(int64_t sequence_length) {
  return std::min<int64_t>(sequence_length, 128);
}
inline int64_t HeadChunk(int64_t num_tokens, int64_t vocab_size) {
  const int64_t fitting = (int64_t{1} << 26) / vocab_size;
  return std::min(num_tokens, std::max<int64_t>(fitting, 64));
}

inline int64_t EmbeddingScratch(int64_t num_tokens, int64_t /*vocab_size*/) {
  return kernels::EmbeddingDeviceScratch(num_tokens);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_DEVICE_BACKEND_H_
