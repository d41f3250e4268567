// SPDX-License-Identifier: Apache-2.0
//
// row_width.h - which row a warp takes, and how many elements a thread at a
// time: kWide where all that a kernel reads and writes can be accessed 16 bytes
// at a time, else one.
#ifndef SOFTMOE_KERNELS_CUDA_ROW_WIDTH_H_
#define SOFTMOE_KERNELS_CUDA_ROW_WIDTH_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernels/simd/inline.h"

namespace softmoe::kernels::SOFTMOE_ISA {

inline constexpr int kWide = 8;  // 16 bytes of bf16, twice 16 of floats

// For __launch_bounds__ of wide kernels of 256 threads: without it, ptxas aims
// at more blocks than have room, and spills.
inline constexpr int kMinBlocks = 4;

template <int kWidth>
using Width = std::integral_constant<int, kWidth>;

// Whether rows with these numbers of columns, or distances between rows, can be
// taken kWide columns at a time in all of these arrays; null is an array that
// is not there. Both types of activations must ask about the same arrays, so
// that they add in the same order.
inline bool TakesWide(std::initializer_list<int64_t> columns,
                      std::initializer_list<const void*> arrays) {
  for (const int64_t each : columns) {
    if (each % kWide != 0) return false;
  }
  for (const void* array : arrays) {
    if (reinterpret_cast<uintptr_t>(array) % 16 != 0) return false;
  }
  return true;
}

// Calls launch(Width<w>()) for the width that TakesWide gives.
template <int kWideAs = kWide, typename Launch>
void AtWidth(bool wide, const Launch& launch) {
  if (wide) {
    launch(Width<kWideAs>());
  } else {
    launch(Width<1>());
  }
}

// The row of this warp, where blocks of kThreads threads have a row for each
// warp.
template <int kThreads>
__device__ __forceinline__ int64_t WarpRow() {
  return int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
}

// Calls body(first, Width<w>()) for the elements [first, first + w) of an array
// that belong to this thread, w = kWidth or, at the array's end, 1. A block has
// kThreads threads and kThreads * kWidth elements.
template <int kThreads, int kWidth, typename Body>
__device__ __forceinline__ void ForElements(int64_t size, const Body& body) {
  const int64_t first = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWidth;
  if (first + kWidth <= size) {
    body(first, Width<kWidth>());
    return;
  }
  for (int64_t i = first; i < size; ++i) body(i, Width<1>());
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_CUDA_ROW_WIDTH_H_
