// SPDX-License-Identifier: Apache-2.0
//
// nccl_library.h - finds NCCL when it is first needed, so that a program starts
// without it, and takes it from wherever this machine has it.
//
// It works as cublaslt_library.h does, in the same places: a program that links
// this links no other NCCL. A build whose toolkit has no nccl.h has no NCCL.
#ifndef SOFTMOE_KERNELS_CUDA_NCCL_LIBRARY_H_
#define SOFTMOE_KERNELS_CUDA_NCCL_LIBRARY_H_

#include <string>

namespace softmoe::kernels {

struct NcclLibrary {
  std::string path;     // as given to the loader; "" if nothing suits
  std::string version;  // "2.28.9"
  // Otherwise: what was looked for and where, or is too old, and what to do.
  std::string missing;
};
// Loads the library if that has not been tried yet.
const NcclLibrary& LoadNccl();

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_NCCL_LIBRARY_H_
