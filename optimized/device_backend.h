// SPDX-License-Identifier: Apache-2.0
//
// device_backend.h - the backend of a CUDA device, and of the simulated one:
// see backend.h, which includes it. SOFTMOE_DEVICE is the namespace of the
// kernels, isa_cuda or isa_shim; SOFTMOE_BF16 stores activations as bf16.
//
// An operation has run when the queue has reached it; the host waits only in
// WaitFor, Finish, ReadArray, WriteArray and, for what was sent two calls
// before, in SentArray::Send.
#ifndef SOFTMOE_OPTIMIZED_DEVICE_BACKEND_H_
#define SOFTMOE_OPTIMIZED_DEVICE_BACKEND_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

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
#include "kernels/simt/bf16.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

namespace device = ::softmoe::kernels::SOFTMOE_DEVICE;

using Queue = kernels::Queue;

// Where kernels are enqueued: a queue, or a stream beside it.
using Stream = kernels::Stream;

#ifdef SOFTMOE_BF16
using Activation = kernels::Bf16;
#else
using Activation = float;
#endif

namespace ops {

// These kernels need only the queue's stream.
#define SOFTMOE_KERNEL(Name)                                        \
  inline void Name(const kernels::Name##Args& args, Queue& queue) { \
    device::Name(args, queue.stream());                             \
  }                                                                 \
  static_assert(true)

SOFTMOE_KERNEL(AdamW);
SOFTMOE_KERNEL(BalanceLoss);
SOFTMOE_KERNEL(BudgetGradient);
SOFTMOE_KERNEL(BuildRoutePlan);
SOFTMOE_KERNEL(GatherGateGradients);
SOFTMOE_KERNEL(LogitNoise);
SOFTMOE_KERNEL(RouterBackward);
SOFTMOE_KERNEL(RouterForward);
SOFTMOE_KERNEL(RoutingCounts);
SOFTMOE_KERNEL(SumOfBlocks);
SOFTMOE_KERNEL(SumOfSquares);

#undef SOFTMOE_KERNEL

// Kernels over activations need only the stream, too.
#define SOFTMOE_KERNEL_OF(Name)                                   \
  inline void Name(const kernels::Name##ArgsOf<Activation>& args, \
                   Queue& queue) {                                \
    device::Name(args, queue.stream());                           \
  }                                                               \
  static_assert(true)

SOFTMOE_KERNEL_OF(EmbeddingBackward);
SOFTMOE_KERNEL_OF(EmbeddingForward);
SOFTMOE_KERNEL_OF(RmsNormBackward);
SOFTMOE_KERNEL_OF(RmsNormForward);
SOFTMOE_KERNEL_OF(Rope);

#undef SOFTMOE_KERNEL_OF

// Kernels from one type to another need only the stream as well.
template <typename X, typename Y>
void Add(const kernels::AddArgsOf<X, Y>& args, Stream& stream) {
  device::Add(args, stream.stream());
}
template <typename X, typename Y>
void InputJitter(const kernels::InputJitterArgsOf<X, Y>& args, Queue& queue) {
  device::InputJitter(args, queue.stream());
}

using device::AttentionBackward;
using device::AttentionForward;
using device::ExpertBackward;
using device::ExpertForward;
using device::Gemm;
using device::HeadCrossEntropy;

}  // namespace ops

inline constexpr MemoryKind kMemory = MemoryKind::kDevice;

inline void* AllocateArray(size_t bytes) {
  return device::AllocateOnDevice(bytes);
}
inline void FreeArray(void* array) noexcept { device::FreeOnDevice(array); }
inline int64_t FreeBytes() { return device::FreeMemory(); }

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
// to = from over [size], where one of the two is bf16.
inline void CastArray(Queue& queue, int64_t size, const float* from,
                      kernels::Bf16* to) {
  device::CastToBf16({.size = size, .from = from, .to = to}, queue.stream());
}
inline void CastArray(Queue& queue, int64_t size, const kernels::Bf16* from,
                      float* to) {
  device::CastToFloat({.size = size, .from = from, .to = to}, queue.stream());
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

// Page-locked host memory, which the device copies from and to without making
// the host wait.
inline void* AllocateOnHost(size_t bytes) {
  return device::AllocateOnHost(bytes);
}
inline void FreeOnHost(void* array) noexcept { device::FreeOnHost(array); }
template <typename T>
class HostArray;  // backend.h

template <typename T>
void SendArray(Queue& queue, std::span<const T> values, T* target) {
  device::StartCopy(target, values.data(), values.size_bytes(), queue.stream());
}

// Stages what is sent in two buffers in turn: the host fills one while the
// device may still copy from the other.
template <typename T>
class SentArray {
 public:
  const T* Send(Queue& queue, std::span<const T> values, T* copy) {
    Stage& stage = stages_[next_];
    next_ = 1 - next_;
    if (stage.sent == nullptr) stage.sent.reset(device::MakeEvent());
    device::FinishEvent(stage.sent.get());
    T* const staged = stage.memory.OfSize(values.size());
    std::ranges::copy(values, staged);
    SendArray<T>(queue, {staged, values.size()}, copy);
    device::RecordEvent(stage.sent.get(), queue.stream());
    return copy;
  }

 private:
  struct FreeEvent {
    void operator()(CUevent_st* event) const { device::FreeEvent(event); }
  };
  struct Stage {
    HostArray<T> memory;
    std::unique_ptr<CUevent_st, FreeEvent> sent;  // the copy from the memory
  };
  Stage stages_[2];
  int next_ = 0;
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

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_DEVICE_BACKEND_H_
