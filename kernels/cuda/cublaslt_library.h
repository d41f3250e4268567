// SPDX-License-Identifier: Apache-2.0
//
// cublaslt_library.h - cuBLASLt, found when it is first needed: so that a
// program starts without it, and takes it from wherever this machine has it.
//
// What links this library links no other cuBLASLt: its functions of that name
// pass each call on. Where it is looked for: library_paths.h.
#ifndef SOFTMOE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
#define SOFTMOE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_

#include <string>

namespace softmoe::kernels {

struct CublasLtLibrary {
  std::string path;     // that the loader was given; "" if nothing was found
  std::string missing;  // otherwise: what was looked for and where
};
// Loads the library if that has not been tried yet.
const CublasLtLibrary& LoadCublasLt();

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
