// SPDX-License-Identifier: Apache-2.0
//
// cpu_backend.h - the backend of the CPU: see backend.h, which includes it.
#ifndef SOFTMOE_OPTIMIZED_CPU_BACKEND_H_
#define SOFTMOE_OPTIMIZED_CPU_BACKEND_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <span>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/balance_loss.h"
#include "kernels/budget_gradient.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "kernels/expert_mlp.h"
#include "kernels/gemm.h"
#include "kernels/noise.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"
#include "kernels/routing_counts.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
inline namespace backend_cpu {

// What operations are enqueued on.
using Queue = ThreadPool;

// Nothing runs beside the queue.
using Stream = Queue;

// The type of stored activations and of operands of products.
using Activation = float;

// The operations: ops::Name(args, queue).
namespace ops = ::softmoe::kernels;

inline constexpr MemoryKind kMemory = MemoryKind::kHost;

// Allocates an array without initialising it. Large arrays are fresh pages of
// the kernel, so what is never written costs only address space: activations
// are sized for the worst routing, but take the memory that the actual routing
// needs.
// Errors   std::bad_alloc.
inline void* AllocateArray(size_t bytes) {
  constexpr size_t kCacheLine = 64, kHugePage = size_t{2} << 20;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  // glibc returns an address even for 0 bytes.
  void* array = std::aligned_alloc(alignment, bytes);
  if (array == nullptr) throw std::bad_alloc();
  // Fewer page faults and TLB misses; a refusal changes nothing else.
  if (alignment == kHugePage) madvise(array, bytes, MADV_HUGEPAGE);
  return array;
}
inline void FreeArray(void* array) noexcept { std::free(array); }

// Waits until everything that was enqueued has run, or failed.
inline void WaitFor(Queue& /*queue*/) noexcept {}

// Waits likewise. Errors: NumericsError if some of it failed.
inline void Finish(Queue& /*queue*/) {}

// target = source over [size], within the backend's memory.
template <typename T>
void CopyArray(Queue& queue, int64_t size, const T* source, T* target) {
  constexpr int64_t kBlock = 16384;
  queue.ParallelForBlocks(size, kBlock, [&](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin,
                static_cast<size_t>(end - begin) * sizeof(T));
  });
}

// x = 0 over [size].
template <typename T>
void ClearArray(Queue& /*queue*/, int64_t size, T* x) {
  std::fill_n(x, size, T(0));
}

// Copy from host memory to the backend's, and back; both wait for what was
// enqueued before.
template <typename T>
void WriteArray(Queue& /*queue*/, std::span<const T> values, T* target) {
  std::ranges::copy(values, target);
}
template <typename T>
void ReadArray(Queue& /*queue*/, const T* source, std::span<T> values) {
  if (source == values.data()) return;  // see OutputOnBackend
  std::copy_n(source, values.size(), values.begin());
}

// Where the backend writes `array`, for ReadArray to bring it back: the array
// itself, or `copy`.
template <typename T, typename Buffer>
T* OutputOnBackend(Queue& /*queue*/, std::span<T> array, Buffer* /*copy*/) {
  return array.data();
}

// Host memory for SendArray, allocated by HostArray (backend.h).
inline void* AllocateOnHost(size_t bytes) { return AllocateArray(bytes); }
inline void FreeOnHost(void* array) noexcept { FreeArray(array); }

// Enqueues target = values. `values` must be in a HostArray and must not change
// until the host has waited.
template <typename T>
void SendArray(Queue& queue, std::span<const T> values, T* target) {
  CopyArray(queue, static_cast<int64_t>(values.size()), values.data(), target);
}

// Arrays of the host as the backend reads them: in place, or as copies.
template <typename T>
class SentArray {
 public:
  // Makes `values` available to what is enqueued from here until the next Send:
  // in place if the backend can read them there, else in `copy`. They must not
  // change until then. The host need not wait.
  const T* Send(Queue& /*queue*/, std::span<const T> values, T* /*copy*/) {
    return values.data();
  }
};

// An array of the backend as the host reads it: in place, or as a copy.
template <typename T>
class FetchedArray {
 public:
  // Enqueues fetching what `array` holds at that point to the host.
  void Start(Queue& /*queue*/, const T* array, int64_t size) {
    view_ = {array, static_cast<size_t>(size)};
  }
  // The array of the last Start, once the host has waited.
  std::span<const T> view() const { return view_; }

 private:
  std::span<const T> view_;
};

// Bytes that AllocateArray can still give, as far as is known.
inline int64_t FreeBytes() { return std::numeric_limits<int64_t>::max(); }

}  // namespace backend_cpu
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_CPU_BACKEND_H_
