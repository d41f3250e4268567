// SPDX-License-Identifier: Apache-2.0
//
// inline.h - marks a function that belongs to one execution: always inlined
// into its caller, on the device where nvcc compiles it, or on both sides
// (SOFTMOE_HOST_INLINE); and a loop of a few steps that must be unrolled so
// that its arrays become registers.
//
// Such code lives in namespace SOFTMOE_ISA: isa_v3 and isa_v4 on the CPU (see
// isa.h), isa_cuda under nvcc, isa_shim where g++ or clang compiles a .cu file
// for the simulator (kernels/simt/shim/README.md). The last two have
// SOFTMOE_CUDA defined.
#ifndef SOFTMOE_KERNELS_SIMD_INLINE_H_
#define SOFTMOE_KERNELS_SIMD_INLINE_H_

#if defined(__CUDACC__) || defined(SOFTMOE_CUDA_SHIM)
#define SOFTMOE_CUDA
#define SOFTMOE_INLINE __device__ __forceinline__
#define SOFTMOE_HOST_INLINE __host__ __device__ __forceinline__
#ifdef SOFTMOE_CUDA_SHIM
#define SOFTMOE_UNROLL
#define SOFTMOE_ISA isa_shim
#else
#define SOFTMOE_UNROLL _Pragma("unroll")
#define SOFTMOE_ISA isa_cuda
#endif
#else
#define SOFTMOE_INLINE inline __attribute__((always_inline))
#define SOFTMOE_HOST_INLINE SOFTMOE_INLINE
#define SOFTMOE_UNROLL _Pragma("GCC unroll 8")
#ifndef SOFTMOE_ISA
#error "compile this in a softmoe_isa_library (bazel/softmoe.bzl)"
#endif
#endif

#endif  // SOFTMOE_KERNELS_SIMD_INLINE_H_
