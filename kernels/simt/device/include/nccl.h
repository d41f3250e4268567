// SPDX-License-Identifier: Apache-2.0
//
// nccl.h - stands in for NCCL's header of that name: as much of NCCL as we
// call, between threads of this process, each with its own simulated device
// (../README.md). What is missing does not compile; ../toolkit_api.h, compiled
// against both, holds names, types and values to NCCL's.
//
// Differences, all of which are stricter: communicators are non-blocking; all
// operations of a communicator go on one stream; an operation is complete only
// when every rank that takes part has reached it on its stream; what the real
// library would hang on, or leave undefined, is an error, which
// ncclGetErrorString explains. The functions have C++ linkage.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_INCLUDE_NCCL_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_INCLUDE_NCCL_H_

#include <climits>
#include <cstddef>

#include "kernels/simt/device/include/cuda_runtime_api.h"

// NOLINTBEGIN: NCCL's names

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_VERSION_CODE 22809

#define NCCL_UNIQUE_ID_BYTES 128
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};

struct ncclComm;
using ncclComm_t = ncclComm*;

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

enum ncclDataType_t { ncclUint8 = 1, ncclFloat32 = 7 };

#define NCCL_CONFIG_UNDEF_INT INT_MIN
struct ncclConfig_t {
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER \
  { NCCL_CONFIG_UNDEF_INT }

// Returns the name and, for the calling thread's last error, the reason.
const char* ncclGetErrorString(ncclResult_t result);

ncclResult_t ncclGetVersion(int* version);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream);

// NOLINTEND

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_INCLUDE_NCCL_H_
