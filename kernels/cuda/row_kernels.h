// SPDX-License-Identifier: Apache-2.0
//
// row_kernels.h - the row kernels on a CUDA device: the argument structs of the
// CPU headers with device pointers, the same bodies, the same fixed blocks.
//
// Every function enqueues on `stream` and returns; nothing is synchronised.
// Router and AdamW compute every element by the same operations in the same
// order as the CPU, so their bits agree with its; RMSNorm sums its rows in
// another order (32 lanes, with one or eight accumulators each, instead of 64
// accumulators). Sums over tokens have the CPU's fixed blocks, which the device
// adds in a fixed tree, the CPU one after another. Which order a device takes
// depends on sizes and on where arrays begin (row_width.h), never on the
// device. No atomics. A launch that fails throws as CheckCuda does
// (launch.h). Compiled for sm_80, sm_90a and sm_100; what has run on which:
// property_tests/gpu/README.md.
#ifndef SOFTMOE_KERNELS_CUDA_ROW_KERNELS_H_
#define SOFTMOE_KERNELS_CUDA_ROW_KERNELS_H_

#include "kernels/adamw.h"
#include "kernels/rmsnorm.h"
#include "kernels/router.h"
#include "kernels/simt/bf16.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

// isa_shim is the same source in the simulator (simt/shim/README.md).
#define SOFTMOE_DECLARE_CUDA_FUNCTION(Name, ...)           \
  namespace isa_cuda {                                     \
  void Name(const __VA_ARGS__& args, CUstream_st* stream); \
  }                                                        \
  namespace isa_shim {                                     \
  void Name(const __VA_ARGS__& args, CUstream_st* stream); \
  }                                                        \
  static_assert(true)

#define SOFTMOE_DECLARE_CUDA_KERNEL(Name) \
  SOFTMOE_DECLARE_CUDA_FUNCTION(Name, Name##Args)

// A kernel for NameArgsOf<float> and NameArgsOf<Bf16>: DESIGN.md, "Types on a
// device", says which tensors these are.
#define SOFTMOE_DECLARE_CUDA_KERNEL_OF(Name)                \
  SOFTMOE_DECLARE_CUDA_FUNCTION(Name, Name##ArgsOf<float>); \
  SOFTMOE_DECLARE_CUDA_FUNCTION(Name, Name##ArgsOf<Bf16>)

namespace softmoe::kernels {

SOFTMOE_DECLARE_CUDA_KERNEL(RouterForward);
SOFTMOE_DECLARE_CUDA_KERNEL(RouterBackward);
SOFTMOE_DECLARE_CUDA_KERNEL_OF(RmsNormForward);
SOFTMOE_DECLARE_CUDA_KERNEL_OF(RmsNormBackward);
SOFTMOE_DECLARE_CUDA_KERNEL(AdamW);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_ROW_KERNELS_H_
