// SPDX-License-Identifier: Apache-2.0
//
// library_paths.h - where a library of NVIDIA's may be on this machine.
#ifndef SOFTMOE_KERNELS_CUDA_LIBRARY_PATHS_H_
#define SOFTMOE_KERNELS_CUDA_LIBRARY_PATHS_H_

#include <string>
#include <vector>

namespace softmoe::kernels {

// Paths of library `name`, in the order in which they are tried:
// $CUDA_HOME/lib64, the loader's path, /usr/local/cuda/lib64, and the Python
// packages that PyTorch brings ($VIRTUAL_ENV), in any of `folders`.
std::vector<std::string> LibraryPaths(const std::string& name,
                                      const std::vector<std::string>& folders);

// How messages name all of these places.
inline constexpr char kLibraryPlaces[] =
    "is neither in $CUDA_HOME/lib64 nor in the loader's path, in "
    "/usr/local/cuda/lib64 or in $VIRTUAL_ENV";

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_LIBRARY_PATHS_H_
