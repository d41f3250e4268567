// SPDX-License-Identifier: Apache-2.0
//
// tensor_core.h - the tensor cores' instructions for matrices of bf16, and what
// feeds them: PTX on a device, simulated elsewhere (shim/warp_matrices.h). All
// 32 lanes of a warp call what is said to be the warp's.
//
// In a fragment, lane 4 g + t of a warp holds pairs of neighbours, the first in
// the lower half (PTX ISA, "Matrix fragments for mma.m16n8k16"):
//
//   A [16, 16], 4 pairs     rows g, g + 8, g, g + 8; columns 2 t, 2 t + 1 of
//                           the first eight, twice, then of the second eight
//   B [16, 8], 2 pairs      column g; rows 2 t, 2 t + 1, and eight further
//   C [16, 8], 4 floats     rows g, g, g + 8, g + 8; columns 2 t, 2 t + 1, both
//                           twice
#ifndef SOFTMOE_KERNELS_SIMT_TENSOR_CORE_H_
#define SOFTMOE_KERNELS_SIMT_TENSOR_CORE_H_

#include <cstdint>

#include "kernels/simt/scalar.h"
#ifndef __CUDACC__
#include "kernels/simt/shim/warp_matrices.h"
#endif

namespace softmoe::kernels::SOFTMOE_ISA {

// What a thread loads, stores or copies at a time.
struct alignas(16) Bf16x8 {
  uint32_t pairs[4];
};

enum class Transposed { kNo, kYes };

#ifdef __CUDACC__

// `bytes` after `begin`: 32 bits are added faster than 64.
__device__ __forceinline__ uint32_t SharedAddress(const Bf16x8* begin,
                                                  int bytes) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(begin)) +
         static_cast<uint32_t>(bytes);
}

// Four matrices [8, 8] in shared memory, of which lane l says where row l % 8
// of matrix l / 8 is: `bytes` after `rows`. Lane 4 g + t gets columns 2 t and
// 2 t + 1 of row g of each; transposed, rows 2 t and 2 t + 1 of column g. The
// warp's.
template <Transposed kTransposed>
__device__ __forceinline__ void LoadMatrices(const Bf16x8* rows, int bytes,
                                             uint32_t (&pairs)[4]) {
  const uint32_t row = SharedAddress(rows, bytes);
  if constexpr (kTransposed == Transposed::kNo) {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
        : "r"(row)
        : "memory");
  } else {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, "
        "[%4];\n"
        : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3])
        : "r"(row)
        : "memory");
  }
}

// C += A B. Sums are fp32; each addition may truncate. The warp's.
__device__ __forceinline__ void MultiplyAdd(const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1, float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Begins to copy 16 bytes to shared memory, `bytes` after `to`, or to write
// zeros there if there is nothing to copy. Nobody may look until the thread has
// waited.
__device__ __forceinline__ void CopyAsync(const Bf16x8* from, bool exists,
                                          Bf16x8* to, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
               :
               : "r"(SharedAddress(to, bytes)), "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}
// The thread's copies since the last call are a group.
__device__ __forceinline__ void CommitCopies() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Waits for the thread's groups, but for the last kLeft of them.
template <int kLeft>
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft) : "memory");
}

// Two floats, each rounded to the nearest.
__device__ __forceinline__ uint32_t PackBf16(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

// 2^x with an error of at most 2 ulp (PTX ISA, ex2.approx.ftz.f32); results
// that would be subnormal are 0.
__device__ __forceinline__ float FastExp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(x));
  return result;
}

#else

template <Transposed kTransposed>
void LoadMatrices(const Bf16x8* rows, int bytes, uint32_t (&pairs)[4],
                  const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  simt::LoadMatrices(rows + bytes / 16, kTransposed == Transposed::kYes, pairs,
                     file, line);
}

inline void MultiplyAdd(const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                        float (&c)[4], const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  const uint32_t b[2] = {b0, b1};
  simt::MultiplyAdd(a, b, c, file, line);
}

inline void CopyAsync(const Bf16x8* from, bool exists, Bf16x8* to, int bytes,
                      const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  simt::BeginCopy(from, exists, to + bytes / 16, file, line);
}
inline void CommitCopies() { simt::CommitCopies(); }
template <int kLeft>
void WaitForCopies() {
  simt::WaitForCopies(kLeft);
}

inline uint32_t PackBf16(float first, float second) {
  return uint32_t{RoundToBf16(first).bits} | uint32_t{RoundToBf16(second).bits}
                                                 << 16;
}

inline float FastExp2(float x) { return simt::Exp2(x); }

#endif

// The larger one; one that is NaN does not count.
SOFTMOE_INLINE float Larger(float a, float b) { return fmaxf(a, b); }

// The two numbers of a pair.
SOFTMOE_INLINE float FirstOf(uint32_t pair) {
  return FloatsOf(static_cast<int32_t>(pair << 16));
}
SOFTMOE_INLINE float SecondOf(uint32_t pair) {
  return FloatsOf(static_cast<int32_t>(pair & 0xffff0000u));
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_TENSOR_CORE_H_
