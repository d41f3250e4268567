// SPDX-License-Identifier: Apache-2.0
//
// product_choice.h - queues whose products take another algorithm than the
// first of cuBLASLt's heuristic, to measure which is fastest. Models take the
// first (queue.h).
#ifndef SOFTMOE_KERNELS_CUDA_PRODUCT_CHOICE_H_
#define SOFTMOE_KERNELS_CUDA_PRODUCT_CHOICE_H_

#include <cstdint>
#include <memory>

#include "kernels/cuda/queue.h"

namespace softmoe::kernels {

inline constexpr int kProductChoices = 8;

// Like MakeQueue, with algorithm number `choice` of the heuristic, from 0 to
// kProductChoices - 1. A product with fewer algorithms throws EnvironmentError.
namespace isa_cuda {
std::unique_ptr<Queue> MakeQueueOfChoice(CUstream_st* stream, int choice,
                                         int64_t workspace = kProductWorkspace);
}
namespace isa_shim {
std::unique_ptr<Queue> MakeQueueOfChoice(CUstream_st* stream, int choice,
                                         int64_t workspace = kProductWorkspace);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_PRODUCT_CHOICE_H_
