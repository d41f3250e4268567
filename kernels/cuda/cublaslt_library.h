// SPDX-License-Identifier: Apache-2.0
//
// cublaslt_library.h - finds cuBLASLt when it is first needed, so that a
// program starts without it, and takes it from wherever this machine has it.
//
// A program that links this links no other cuBLASLt: the functions of that name
// here pass each call on. library_paths.h says where it is looked for.
#ifndef SOFTMOE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
#define SOFTMOE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_

#include <string>

namespace softmoe::kernels {

struct CublasLtLibrary {
  std::string path;     // as given to the loader; "" if nothing was found
  std::string missing;  // otherwise: what was looked for and where
};
// Loads the library if that has not been tried yet.
const CublasLtLibrary& LoadCublasLt();

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
