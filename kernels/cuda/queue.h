// SPDX-License-Identifier: Apache-2.0
//
// queue.h - where a model's operations are enqueued on a CUDA device: a stream,
// a few more beside it for products that may run at the same time, and what
// cuBLASLt needs on each.
//
// Nothing here synchronises. One handle, one workspace of fixed size for each
// stream and the first algorithm of the heuristic: so the bits of a product
// depend on its shape, the alignment of its operands, the library and the
// device, not on what else runs.
#ifndef SOFTMOE_KERNELS_CUDA_QUEUE_H_
#define SOFTMOE_KERNELS_CUDA_QUEUE_H_

#include <cstdint>
#include <memory>

#include "kernels/gemm.h"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace softmoe::kernels {

// `count` products of one shape, whose matrices lie at fixed distances.
struct ProductArgs {
  GemmArgs product;  // of the first; fp32, no TF32; row-major
  int64_t count = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;  // elements
};

class Queue {
 public:
  // Streams beside the main one.
  static constexpr int kSides = 4;

  virtual ~Queue() = default;

  virtual CUstream_st* stream() = 0;

  // Enqueues products. An empty sum (k = 0) writes zeros, or adds nothing.
  // Errors   EnvironmentError if the library has no algorithm or refuses.
  virtual void Multiply(const ProductArgs& args) = 0;

  // What is enqueued on the sides between Fork and Join runs after all that is
  // on the stream at the Fork; what is on the stream after the Join runs after
  // all of it. In between, nothing goes to the stream itself.
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

}  // namespace softmoe::kernels

// An operation made of products and kernels, which may use the sides.
#define SOFTMOE_DECLARE_CUDA_OPERATION(Name)       \
  namespace isa_cuda {                             \
  void Name(const Name##Args& args, Queue& queue); \
  }                                                \
  namespace isa_shim {                             \
  void Name(const Name##Args& args, Queue& queue); \
  }                                                \
  static_assert(true)

#endif  // SOFTMOE_KERNELS_CUDA_QUEUE_H_
