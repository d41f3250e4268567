// SPDX-License-Identifier: Apache-2.0
//
// backend.h - what the model's sources are compiled against, once for each
// backend: where arrays live, what operations are enqueued on, how arrays go to
// the host and back.
//
//   backend_cpu        memory of the host, a ThreadPool: an operation has run
//                      when it returns, and nothing is copied
//   backend_cuda       a CUDA device, in fp32
//   backend_simulated  the simulated CUDA device (kernels/simt/device), for
//                      tests
//   backend_cuda_bf16, backend_simulated_bf16
//                      the same devices, with activations and operands of
//                      products stored as bf16 (DESIGN.md, "Types on a device")
//
// Everything compiled this way is in the inline namespace SOFTMOE_BACKEND: a
// source of optimized/ names it once, and a program may hold several backends.
// What all of them share (configuration, batches, statistics) is outside it.
#ifndef SOFTMOE_OPTIMIZED_BACKEND_H_
#define SOFTMOE_OPTIMIZED_BACKEND_H_

#ifndef SOFTMOE_BACKEND
#define SOFTMOE_BACKEND backend_cpu
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#ifdef SOFTMOE_DEVICE
#include "optimized/device_backend.h"
#else
#include "optimized/cpu_backend.h"
#endif
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

using PassArrays = PassArraysOf<Activation>;
using LayerActivations = LayerActivationsOf<Activation>;

inline constexpr Precision kPrecision =
    std::is_same_v<Activation, float> ? Precision::kFp32 : Precision::kBf16;

// Host memory for SendArray and FetchedArray. Growing loses its content; first,
// the caller must have waited for everything that uses it.
template <typename T>
class HostArray {
 public:
  T* OfSize(size_t size) {
    if (size > size_) {
      data_.reset();
      data_.reset(static_cast<T*>(AllocateOnHost(size * sizeof(T))));
      size_ = size;
    }
    return data_.get();
  }
  T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const { FreeOnHost(data); }
  };
  std::unique_ptr<T[], Free> data_;
  size_t size_ = 0;
};

// Returns `array` itself if its elements have the type Copy, else `copy`.
template <typename Array, typename Copy>
Copy* InPlaceOr(Array* array, Copy* copy) {
  if constexpr (std::is_same_v<const Array, const Copy>) {
    return array;
  } else {
    return copy;
  }
}

// Enqueues a cast of `array` [size] if needed; returns where the result is.
template <typename Array, typename Copy>
const Copy* CastTo(Queue& queue, int64_t size, const Array* array, Copy* copy) {
  if constexpr (!std::is_same_v<Array, Copy>) {
    CastArray(queue, size, array, copy);
  }
  return InPlaceOr<const Array, const Copy>(array, copy);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BACKEND_H_
