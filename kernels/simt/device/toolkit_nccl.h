// SPDX-License-Identifier: Apache-2.0
//
// toolkit_nccl.h - what the simulated NCCL has in common with the real one:
// compiled against either (simulated_nccl.cc, toolkit_nccl.cu), as
// toolkit_api.h is. Include the library first.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_NCCL_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_NCCL_H_

#include <climits>
#include <cstddef>
#include <type_traits>

#include "kernels/simt/device/toolkit_is.h"

namespace softmoe::simt {

static_assert(NCCL_MAJOR == 2);
static_assert(sizeof(ncclUniqueId) == NCCL_UNIQUE_ID_BYTES);
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN);

SOFTMOE_VALUE(NCCL_UNIQUE_ID_BYTES, 128);
SOFTMOE_VALUE(ncclSuccess, 0);
SOFTMOE_VALUE(ncclUnhandledCudaError, 1);
SOFTMOE_VALUE(ncclSystemError, 2);
SOFTMOE_VALUE(ncclInternalError, 3);
SOFTMOE_VALUE(ncclInvalidArgument, 4);
SOFTMOE_VALUE(ncclInvalidUsage, 5);
SOFTMOE_VALUE(ncclRemoteError, 6);
SOFTMOE_VALUE(ncclInProgress, 7);
SOFTMOE_VALUE(ncclUint8, 1);
SOFTMOE_VALUE(ncclFloat32, 7);

SOFTMOE_MEMBER(ncclUniqueId, internal, char[NCCL_UNIQUE_ID_BYTES]);
SOFTMOE_MEMBER(ncclConfig_t, blocking, int);

SOFTMOE_IS(ncclGetErrorString, const char*(ncclResult_t));
SOFTMOE_IS(ncclGetVersion, ncclResult_t(int*));
SOFTMOE_IS(ncclGetUniqueId, ncclResult_t(ncclUniqueId*));
SOFTMOE_IS(ncclCommInitRankConfig,
           ncclResult_t(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*));
SOFTMOE_IS(ncclCommGetAsyncError, ncclResult_t(ncclComm_t, ncclResult_t*));
SOFTMOE_IS(ncclCommAbort, ncclResult_t(ncclComm_t));
SOFTMOE_IS(ncclCommDestroy, ncclResult_t(ncclComm_t));
SOFTMOE_IS(ncclGroupStart, ncclResult_t());
SOFTMOE_IS(ncclGroupEnd, ncclResult_t());
SOFTMOE_IS(ncclSend, ncclResult_t(const void*, size_t, ncclDataType_t, int,
                                  ncclComm_t, cudaStream_t));
SOFTMOE_IS(ncclRecv, ncclResult_t(void*, size_t, ncclDataType_t, int,
                                  ncclComm_t, cudaStream_t));
SOFTMOE_IS(ncclBroadcast,
           ncclResult_t(const void*, void*, size_t, ncclDataType_t, int,
                        ncclComm_t, cudaStream_t));

// How a configuration is written.
inline ncclConfig_t NonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_NCCL_H_
