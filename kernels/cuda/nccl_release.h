// SPDX-License-Identifier: Apache-2.0
//
// nccl_release.h - how NCCL's versions are written.
#ifndef SOFTMOE_KERNELS_CUDA_NCCL_RELEASE_H_
#define SOFTMOE_KERNELS_CUDA_NCCL_RELEASE_H_

#include <string>

namespace softmoe::kernels {

// "2.28.9" for 22809, which is what ncclGetVersion gives.
inline std::string NcclRelease(int version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_NCCL_RELEASE_H_
