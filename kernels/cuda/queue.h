// SPDX-License-Identifier: Apache-2.0
//
// queue.h - where a model's operations are enqueued on a CUDA device: a stream,
// a few more beside it for products that may run at the same time, and what
// cuBLASLt needs on each.
//
// Nothing here synchronises. One handle, one workspace of fixed size for each
// stream and the first algorithm of the heuristic: so the bits of a product
// depend on its shape, the alignment of its operands, the library and the
// device, not on what else runs. Where the number of rows varies (rows of an
// expert), it is first rounded up by RowBucket: a heuristic takes longer than a
// product, and each number would need one. The library may refuse such an
// algorithm for fewer rows (cuBLASLt 13.1 does on an H100, in fp32); then these
// rows get their own.
#ifndef SOFTMOE_KERNELS_CUDA_QUEUE_H_
#define SOFTMOE_KERNELS_CUDA_QUEUE_H_

#include <cstdint>
#include <memory>
#include <type_traits>

#include "kernels/cuda/device.h"
#include "kernels/gemm.h"
#include "kernels/simt/bf16.h"

namespace softmoe::kernels {

// The type of an array's elements.
enum class Storage { kFloat, kBf16 };
template <typename T>
inline constexpr Storage kStorageOf =
    std::is_same_v<T, Bf16> ? Storage::kBf16 : Storage::kFloat;

// `count` products of one shape, whose matrices lie at fixed distances.
struct ProductArgs {
  GemmArgsOf<void, void> product;  // the first; no TF32; row-major
  // Types of operands and result; a bf16 result needs bf16 operands. Sums are
  // fp32; a bf16 result is rounded once, after `accumulate`.
  Storage operands, result;
  int64_t count = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // elements
  // Whether the rows of `a` as stored (m, or k if a is transposed) are another
  // number in the next pass. Only with count = 1.
  bool rows_vary = false;
};

// `rows`, rounded up to one of eight numbers between powers of two.
constexpr int64_t RowBucket(int64_t rows) {
  int64_t step = 1;
  while (rows > 16 * step) step *= 2;
  return (rows + step - 1) / step * step;
}

// One product.
template <typename Operand, typename Result>
ProductArgs ProductOf(const GemmArgsOf<Operand, Result>& p) {
  return {.product = {p.a, p.b, p.c, p.m, p.n, p.k, p.lda, p.ldb, p.ldc,
                      p.transpose_a, p.transpose_b, p.accumulate},
          .operands = kStorageOf<Operand>,
          .result = kStorageOf<Result>};
}

class Queue : public Stream {
 public:
  // Streams beside the main one.
  static constexpr int kSides = 4;

  // Enqueues products. An empty sum (k = 0) writes zeros, or adds nothing.
  // Errors   InternalError if the library has no algorithm or refuses.
  virtual void Multiply(const ProductArgs& args) = 0;

  // Work enqueued on the sides between Fork and Join runs after all that is on
  // the stream at the Fork, and before all that comes to the stream after the
  // Join. In between, nothing goes to the stream itself.
  virtual void Fork() = 0;
  virtual void MultiplyBeside(int side, const ProductArgs& args) = 0;
  virtual void Join() = 0;
};

// Bytes of each of the 1 + kSides workspaces that suit an H100.
inline constexpr int64_t kProductWorkspace = int64_t{32} << 20;

// A queue on `stream`, which must outlive it.
// Errors   EnvironmentError if there is no device, library or memory.
namespace isa_cuda {
std::unique_ptr<Queue> MakeQueue(CUstream_st* stream,
                                 int64_t workspace = kProductWorkspace);
}
namespace isa_shim {
std::unique_ptr<Queue> MakeQueue(CUstream_st* stream,
                                 int64_t workspace = kProductWorkspace);
}

inline constexpr int kProductChoices = 8;

// Like MakeQueue, to measure which algorithm is fastest: products take number
// `choice` of cuBLASLt's heuristic, from 0 to kProductChoices - 1, where models
// take the first. A product with fewer algorithms throws EnvironmentError.
namespace isa_cuda {
std::unique_ptr<Queue> MakeQueueOfChoice(CUstream_st* stream, int choice,
                                         int64_t workspace = kProductWorkspace);
}
namespace isa_shim {
std::unique_ptr<Queue> MakeQueueOfChoice(CUstream_st* stream, int choice,
                                         int64_t workspace = kProductWorkspace);
}

}  // namespace softmoe::kernels

// An operation made of products and kernels, which may use the sides.
#define SOFTMOE_DECLARE_CUDA_OPERATION(Name, ...)   \
  namespace isa_cuda {                              \
  void Name(const __VA_ARGS__& args, Queue& queue); \
  }                                                 \
  namespace isa_shim {                              \
  void Name(const __VA_ARGS__& args, Queue& queue); \
  }                                                 \
  static_assert(true)

// For NameArgsOf<float> and NameArgsOf<Bf16>.
#define SOFTMOE_DECLARE_CUDA_OPERATION_OF(Name)              \
  SOFTMOE_DECLARE_CUDA_OPERATION(Name, Name##ArgsOf<float>); \
  SOFTMOE_DECLARE_CUDA_OPERATION(Name, Name##ArgsOf<Bf16>)

// Defines what SOFTMOE_DECLARE_CUDA_OPERATION_OF declares, by the source's
// template Enqueue(args, queue).
#define SOFTMOE_DEFINE_CUDA_OPERATION_OF(Name)               \
  void Name(const Name##ArgsOf<float>& args, Queue& queue) { \
    Enqueue(args, queue);                                    \
  }                                                          \
  void Name(const Name##ArgsOf<Bf16>& args, Queue& queue) {  \
    Enqueue(args, queue);                                    \
  }                                                          \
  static_assert(true)

#endif  // SOFTMOE_KERNELS_CUDA_QUEUE_H_
