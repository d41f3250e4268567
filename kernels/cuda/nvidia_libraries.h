// SPDX-License-Identifier: Apache-2.0
//
// nvidia_libraries.h - finds cuBLASLt and NCCL when they are first needed, so
// that a program starts without them, and takes them from wherever this machine
// has them.
//
// A program that links this links no other cuBLASLt or NCCL: the functions of
// those names here pass each call on. A build whose toolkit has no nccl.h has
// no NCCL.
#ifndef SOFTMOE_KERNELS_CUDA_NVIDIA_LIBRARIES_H_
#define SOFTMOE_KERNELS_CUDA_NVIDIA_LIBRARIES_H_

#include <string>
#include <vector>

namespace softmoe::kernels {

// Paths of library `name`, in the order in which they are tried:
// $CUDA_HOME/lib64, the loader's path, /usr/local/cuda/lib64, and the Python
// packages that PyTorch brings (in $VIRTUAL_ENV and /usr/local/lib), in any of
// `folders`.
std::vector<std::string> LibraryPaths(const std::string& name,
                                      const std::vector<std::string>& folders);

// How messages name all of these places.
inline constexpr char kLibraryPlaces[] =
    "is neither in $CUDA_HOME/lib64 nor in the loader's path, in "
    "/usr/local/cuda/lib64, in $VIRTUAL_ENV or in /usr/local/lib";

// What the loader says after a path that it cannot open. Of a library that
// needs another one, it names that one.
inline constexpr char kNotThere[] = ": cannot open shared object file: ";

struct CublasLtLibrary {
  std::string path;  // as given to the loader; "" if nothing was found
  // Otherwise: what was looked for and where, or what cannot be loaded.
  std::string missing;
};
// Loads the library if that has not been tried yet.
const CublasLtLibrary& LoadCublasLt();

struct NcclLibrary {
  std::string path;     // as given to the loader; "" if nothing suits
  std::string version;  // "2.28.9"
  // Otherwise: what was looked for and where, what is too old or cannot be
  // loaded, and what to do.
  std::string missing;
};
// Loads the library if that has not been tried yet.
const NcclLibrary& LoadNccl();

// "2.28.9" for 22809, which is what ncclGetVersion gives.
inline std::string NcclRelease(int version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_NVIDIA_LIBRARIES_H_
