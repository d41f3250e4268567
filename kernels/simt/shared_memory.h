// SPDX-License-Identifier: Apache-2.0
//
// shared_memory.h - how a kernel names its shared memory, for nvcc and for the
// simulator alike:
//
//   SOFTMOE_SHARED(float, partial_sums, [kWarps][kColumns]);
//   SOFTMOE_DYNAMIC_SHARED(float, rows);  // as many as the launch gave
//
// Dynamic shared memory begins at a multiple of 16 bytes.
//
// C++ has no such storage: the simulator keeps an arena per block, in which
// every variable begins undefined and is fenced (shim/shared_arena.h).
#ifndef SOFTMOE_KERNELS_SIMT_SHARED_MEMORY_H_
#define SOFTMOE_KERNELS_SIMT_SHARED_MEMORY_H_

#ifdef __CUDACC__

#define SOFTMOE_SHARED(type, name, extents) __shared__ type name extents
#define SOFTMOE_DYNAMIC_SHARED(type, name) \
  extern __shared__ __align__(16) type name[]

#else

#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {

// A reference to the array, so that UBSan sees its extents.
template <typename Array>
Array& SharedArray(const char* identity, const char* file, int line) {
  return *static_cast<Array*>(
      SharedMemory(identity, sizeof(Array), file, line));
}

}  // namespace softmoe::simt

// NOLINTBEGIN(bugprone-macro-parentheses): a type and a declarator
#define SOFTMOE_SHARED(type, name, extents)                         \
  static const char name##_identity = 0;                            \
  type(&name) extents = ::softmoe::simt::SharedArray<type extents>( \
      &name##_identity, __FILE__, __LINE__)
#define SOFTMOE_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::softmoe::simt::DynamicSharedMemory())
// NOLINTEND(bugprone-macro-parentheses)

#endif

#endif  // SOFTMOE_KERNELS_SIMT_SHARED_MEMORY_H_
