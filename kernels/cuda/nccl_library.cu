// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvidia_libraries.h"

#ifndef SOFTMOE_NCCL

namespace softmoe::kernels {

const NcclLibrary& LoadNccl() {
  static const NcclLibrary library = {
      .path = {},
      .version = {},
      .missing =
          "this program was built without NCCL: its header, nccl.h, was "
          "not in the CUDA toolkit; install it there and build again"};
  return library;
}

}  // namespace softmoe::kernels

#else

#include <dlfcn.h>
#include <nccl.h>

namespace softmoe::kernels {
namespace {

constexpr char kName[] = "libnccl.so.2";
void* handle = nullptr;  // from dlopen

// A library knows the configurations of older headers, not of newer ones; they
// grow with minor releases, not with patches.
constexpr int kNeeded = NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, 0);

NcclLibrary Load() {
  const std::string needed = NcclRelease(kNeeded);
  std::string old, broken;  // the first that is there
  for (const std::string& path : LibraryPaths(kName, {"nccl"})) {
    void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      const std::string error = dlerror();
      if (broken.empty() && !error.starts_with(path + kNotThere))
        broken = error;
      continue;
    }
    const auto get_version = reinterpret_cast<decltype(&::ncclGetVersion)>(
        dlsym(opened, "ncclGetVersion"));
    int version = 0;
    if (get_version != nullptr && get_version(&version) == ncclSuccess &&
        version >= kNeeded) {
      handle = opened;
      return {.path = path, .version = NcclRelease(version), .missing = {}};
    }
    if (old.empty()) old = path + " is " + NcclRelease(version);
    dlclose(opened);
  }
  return {
      .path = {},
      .version = {},
      .missing = old.empty()
                     ? (broken.empty()
                            ? std::string(kName) + " " + kLibraryPlaces
                            : "NCCL is there and cannot be loaded: " + broken) +
                           "; install NCCL " + needed +
                           " or later, or set CUDA_HOME"
                     : "NCCL is too old: " + old + ", and " + needed +
                           " or later is needed; install that, or say "
                           "with CUDA_HOME where it is"};
}

void* Find(const char* function) {
  return LoadNccl().path.empty() ? nullptr : dlsym(handle, function);
}

}  // namespace

const NcclLibrary& LoadNccl() {
  static const NcclLibrary library = Load();
  return library;
}

}  // namespace softmoe::kernels

// Calls one of the library's functions and returns what it returns.
#define SOFTMOE_PASS_ON(Function, ...)                                  \
  static const auto function = reinterpret_cast<decltype(&::Function)>( \
      softmoe::kernels::Find(#Function));                               \
  return function == nullptr ? ncclSystemError : function(__VA_ARGS__)

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  static const auto function =
      reinterpret_cast<decltype(&::ncclGetErrorString)>(
          softmoe::kernels::Find("ncclGetErrorString"));
  return function == nullptr ? softmoe::kernels::LoadNccl().missing.c_str()
                             : function(result);
}

ncclResult_t ncclGetVersion(int* version) {
  SOFTMOE_PASS_ON(ncclGetVersion, version);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  SOFTMOE_PASS_ON(ncclGetUniqueId, id);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  SOFTMOE_PASS_ON(ncclCommInitRankConfig, comm, ranks, id, rank, config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  SOFTMOE_PASS_ON(ncclCommGetAsyncError, comm, error);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  SOFTMOE_PASS_ON(ncclCommAbort, comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  SOFTMOE_PASS_ON(ncclCommDestroy, comm);
}

ncclResult_t ncclGroupStart() { SOFTMOE_PASS_ON(ncclGroupStart); }

ncclResult_t ncclGroupEnd() { SOFTMOE_PASS_ON(ncclGroupEnd); }

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream) {
  SOFTMOE_PASS_ON(ncclSend, from, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  SOFTMOE_PASS_ON(ncclRecv, to, count, type, peer, comm, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  SOFTMOE_PASS_ON(ncclBroadcast, from, to, count, type, root, comm, stream);
}

}  // extern "C"

#endif  // SOFTMOE_NCCL
