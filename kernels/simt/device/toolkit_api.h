// SPDX-License-Identifier: Apache-2.0
//
// toolkit_api.h - what the simulated libraries have in common with the real
// ones: compiled against either (simulated_api.cc, toolkit_api.cu), so that
// names, values and signatures are the same. Include the libraries first; NCCL,
// whose header a toolkit may lack, is compared where it is included.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_API_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_API_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#define SOFTMOE_IS(name, ...) static_assert(Is<__VA_ARGS__>(&name))
#define SOFTMOE_VALUE(name, value) \
  static_assert(static_cast<int>(name) == (value))
#define SOFTMOE_MEMBER(type, name, ...) \
  static_assert(std::is_same_v<decltype(type::name), __VA_ARGS__>)

namespace softmoe::simt {

// Whether the name denotes a function, or an overload, of exactly this type.
template <typename Function>
constexpr bool Is(Function*) {
  return true;
}

// ---- Runtime

SOFTMOE_VALUE(cudaSuccess, 0);
SOFTMOE_VALUE(cudaErrorInvalidValue, 1);
SOFTMOE_VALUE(cudaErrorMemoryAllocation, 2);
SOFTMOE_VALUE(cudaErrorInitializationError, 3);
SOFTMOE_VALUE(cudaErrorInvalidConfiguration, 9);
SOFTMOE_VALUE(cudaErrorInvalidMemcpyDirection, 21);
SOFTMOE_VALUE(cudaErrorInsufficientDriver, 35);
SOFTMOE_VALUE(cudaErrorNoDevice, 100);
SOFTMOE_VALUE(cudaErrorInvalidDevice, 101);
SOFTMOE_VALUE(cudaErrorNoKernelImageForDevice, 209);
SOFTMOE_VALUE(cudaErrorInvalidResourceHandle, 400);
SOFTMOE_VALUE(cudaErrorNotReady, 600);
SOFTMOE_VALUE(cudaErrorIllegalAddress, 700);
SOFTMOE_VALUE(cudaErrorLaunchOutOfResources, 701);
SOFTMOE_VALUE(cudaErrorHardwareStackError, 714);
SOFTMOE_VALUE(cudaErrorIllegalInstruction, 715);
SOFTMOE_VALUE(cudaErrorMisalignedAddress, 716);
SOFTMOE_VALUE(cudaErrorInvalidAddressSpace, 717);
SOFTMOE_VALUE(cudaErrorInvalidPc, 718);
SOFTMOE_VALUE(cudaErrorLaunchFailure, 719);
SOFTMOE_VALUE(cudaErrorUnknown, 999);
SOFTMOE_VALUE(cudaMemcpyHostToHost, 0);
SOFTMOE_VALUE(cudaMemcpyHostToDevice, 1);
SOFTMOE_VALUE(cudaMemcpyDeviceToHost, 2);
SOFTMOE_VALUE(cudaMemcpyDeviceToDevice, 3);
SOFTMOE_VALUE(cudaMemcpyDefault, 4);
SOFTMOE_VALUE(cudaStreamNonBlocking, 1);
SOFTMOE_VALUE(cudaEventDisableTiming, 2);
SOFTMOE_VALUE(cudaFuncAttributeMaxDynamicSharedMemorySize, 8);

SOFTMOE_IS(cudaGetErrorName, const char*(cudaError_t));
SOFTMOE_IS(cudaGetErrorString, const char*(cudaError_t));
SOFTMOE_IS(cudaGetLastError, cudaError_t());
SOFTMOE_IS(cudaGetDeviceCount, cudaError_t(int*));
SOFTMOE_IS(cudaSetDevice, cudaError_t(int));
SOFTMOE_IS(cudaGetDeviceProperties, cudaError_t(cudaDeviceProp*, int));
SOFTMOE_IS(cudaDriverGetVersion, cudaError_t(int*));
SOFTMOE_IS(cudaRuntimeGetVersion, cudaError_t(int*));
SOFTMOE_IS(cudaDeviceSynchronize, cudaError_t());
SOFTMOE_IS(cudaMemGetInfo, cudaError_t(size_t*, size_t*));
SOFTMOE_IS(cudaMalloc, cudaError_t(void**, size_t));
SOFTMOE_IS(cudaFree, cudaError_t(void*));
SOFTMOE_IS(cudaMallocHost, cudaError_t(void**, size_t));
SOFTMOE_IS(cudaFreeHost, cudaError_t(void*));
SOFTMOE_IS(cudaStreamCreateWithFlags, cudaError_t(cudaStream_t*, unsigned));
SOFTMOE_IS(cudaStreamDestroy, cudaError_t(cudaStream_t));
SOFTMOE_IS(cudaStreamSynchronize, cudaError_t(cudaStream_t));
SOFTMOE_IS(cudaStreamWaitEvent,
           cudaError_t(cudaStream_t, cudaEvent_t, unsigned));
SOFTMOE_IS(cudaEventCreateWithFlags, cudaError_t(cudaEvent_t*, unsigned));
SOFTMOE_IS(cudaEventDestroy, cudaError_t(cudaEvent_t));
SOFTMOE_IS(cudaEventRecord, cudaError_t(cudaEvent_t, cudaStream_t));
SOFTMOE_IS(cudaEventSynchronize, cudaError_t(cudaEvent_t));
SOFTMOE_IS(cudaEventQuery, cudaError_t(cudaEvent_t));
SOFTMOE_IS(cudaMemcpyAsync, cudaError_t(void*, const void*, size_t,
                                        cudaMemcpyKind, cudaStream_t));
SOFTMOE_IS(cudaMemsetAsync, cudaError_t(void*, int, size_t, cudaStream_t));
SOFTMOE_IS(cudaFuncSetAttribute,
           cudaError_t(const void*, cudaFuncAttribute, int));
SOFTMOE_IS(cudaFuncGetAttributes,
           cudaError_t(cudaFuncAttributes*, const void*));

SOFTMOE_MEMBER(cudaUUID_t, bytes, char[16]);
SOFTMOE_MEMBER(cudaDeviceProp, name, char[256]);
SOFTMOE_MEMBER(cudaDeviceProp, uuid, cudaUUID_t);
SOFTMOE_MEMBER(cudaDeviceProp, totalGlobalMem, size_t);
SOFTMOE_MEMBER(cudaDeviceProp, sharedMemPerBlock, size_t);
SOFTMOE_MEMBER(cudaDeviceProp, sharedMemPerBlockOptin, size_t);
SOFTMOE_MEMBER(cudaDeviceProp, warpSize, int);
SOFTMOE_MEMBER(cudaDeviceProp, maxThreadsPerBlock, int);
SOFTMOE_MEMBER(cudaDeviceProp, major, int);
SOFTMOE_MEMBER(cudaDeviceProp, minor, int);
SOFTMOE_MEMBER(cudaDeviceProp, multiProcessorCount, int);
SOFTMOE_MEMBER(cudaFuncAttributes, maxThreadsPerBlock, int);
SOFTMOE_MEMBER(cudaLaunchConfig_t, gridDim, dim3);
SOFTMOE_MEMBER(cudaLaunchConfig_t, blockDim, dim3);
SOFTMOE_MEMBER(cudaLaunchConfig_t, dynamicSmemBytes, size_t);
SOFTMOE_MEMBER(cudaLaunchConfig_t, stream, cudaStream_t);

// ---- cuBLASLt

SOFTMOE_VALUE(CUDA_R_32F, 0);
SOFTMOE_VALUE(CUDA_R_16F, 2);
SOFTMOE_VALUE(CUDA_R_16BF, 14);
SOFTMOE_VALUE(CUBLAS_STATUS_SUCCESS, 0);
SOFTMOE_VALUE(CUBLAS_STATUS_NOT_INITIALIZED, 1);
SOFTMOE_VALUE(CUBLAS_STATUS_ALLOC_FAILED, 3);
SOFTMOE_VALUE(CUBLAS_STATUS_INVALID_VALUE, 7);
SOFTMOE_VALUE(CUBLAS_STATUS_ARCH_MISMATCH, 8);
SOFTMOE_VALUE(CUBLAS_STATUS_EXECUTION_FAILED, 13);
SOFTMOE_VALUE(CUBLAS_STATUS_INTERNAL_ERROR, 14);
SOFTMOE_VALUE(CUBLAS_STATUS_NOT_SUPPORTED, 15);
SOFTMOE_VALUE(CUBLAS_OP_N, 0);
SOFTMOE_VALUE(CUBLAS_OP_T, 1);
SOFTMOE_VALUE(CUBLAS_COMPUTE_32F, 68);
SOFTMOE_VALUE(CUBLAS_COMPUTE_32F_FAST_TF32, 77);
SOFTMOE_VALUE(CUBLASLT_ORDER_COL, 0);
SOFTMOE_VALUE(CUBLASLT_ORDER_ROW, 1);
SOFTMOE_VALUE(CUBLASLT_MATRIX_LAYOUT_TYPE, 0);
SOFTMOE_VALUE(CUBLASLT_MATRIX_LAYOUT_ORDER, 1);
SOFTMOE_VALUE(CUBLASLT_MATRIX_LAYOUT_ROWS, 2);
SOFTMOE_VALUE(CUBLASLT_MATRIX_LAYOUT_COLS, 3);
SOFTMOE_VALUE(CUBLASLT_MATRIX_LAYOUT_LD, 4);
SOFTMOE_VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5);
SOFTMOE_VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6);
SOFTMOE_VALUE(CUBLASLT_MATMUL_DESC_TRANSA, 3);
SOFTMOE_VALUE(CUBLASLT_MATMUL_DESC_TRANSB, 4);
SOFTMOE_VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1);
SOFTMOE_VALUE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3);
SOFTMOE_VALUE(CUBLASLT_REDUCTION_SCHEME_INPLACE, 1);
SOFTMOE_VALUE(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 2);
SOFTMOE_VALUE(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 4);
SOFTMOE_VALUE(CUBLASLT_REDUCTION_SCHEME_MASK, 0x7);
SOFTMOE_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5);
SOFTMOE_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6);
SOFTMOE_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7);
SOFTMOE_VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8);

SOFTMOE_IS(cublasLtCreate, cublasStatus_t(cublasLtHandle_t*));
SOFTMOE_IS(cublasLtDestroy, cublasStatus_t(cublasLtHandle_t));
SOFTMOE_IS(cublasLtGetVersion, size_t());
SOFTMOE_IS(cublasLtGetStatusName, const char*(cublasStatus_t));
SOFTMOE_IS(cublasLtGetStatusString, const char*(cublasStatus_t));
SOFTMOE_IS(cublasLtMatrixLayoutCreate,
           cublasStatus_t(cublasLtMatrixLayout_t*, cudaDataType, uint64_t,
                          uint64_t, int64_t));
SOFTMOE_IS(cublasLtMatrixLayoutDestroy, cublasStatus_t(cublasLtMatrixLayout_t));
SOFTMOE_IS(cublasLtMatrixLayoutSetAttribute,
           cublasStatus_t(cublasLtMatrixLayout_t,
                          cublasLtMatrixLayoutAttribute_t, const void*,
                          size_t));
SOFTMOE_IS(cublasLtMatmulDescCreate,
           cublasStatus_t(cublasLtMatmulDesc_t*, cublasComputeType_t,
                          cudaDataType));
SOFTMOE_IS(cublasLtMatmulDescDestroy, cublasStatus_t(cublasLtMatmulDesc_t));
SOFTMOE_IS(cublasLtMatmulDescSetAttribute,
           cublasStatus_t(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
                          const void*, size_t));
SOFTMOE_IS(cublasLtMatmulPreferenceCreate,
           cublasStatus_t(cublasLtMatmulPreference_t*));
SOFTMOE_IS(cublasLtMatmulPreferenceDestroy,
           cublasStatus_t(cublasLtMatmulPreference_t));
SOFTMOE_IS(cublasLtMatmulPreferenceSetAttribute,
           cublasStatus_t(cublasLtMatmulPreference_t,
                          cublasLtMatmulPreferenceAttributes_t, const void*,
                          size_t));
SOFTMOE_IS(cublasLtMatmulAlgoGetHeuristic,
           cublasStatus_t(cublasLtHandle_t, cublasLtMatmulDesc_t,
                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                          cublasLtMatmulPreference_t, int,
                          cublasLtMatmulHeuristicResult_t*, int*));
SOFTMOE_IS(cublasLtMatmul,
           cublasStatus_t(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*,
                          const void*, cublasLtMatrixLayout_t, const void*,
                          cublasLtMatrixLayout_t, const void*, const void*,
                          cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                          const cublasLtMatmulAlgo_t*, void*, size_t,
                          cudaStream_t));

SOFTMOE_MEMBER(cublasLtMatmulAlgo_t, data, uint64_t[8]);
SOFTMOE_MEMBER(cublasLtMatmulHeuristicResult_t, algo, cublasLtMatmulAlgo_t);
SOFTMOE_MEMBER(cublasLtMatmulHeuristicResult_t, workspaceSize, size_t);
SOFTMOE_MEMBER(cublasLtMatmulHeuristicResult_t, state, cublasStatus_t);
SOFTMOE_MEMBER(cublasLtMatmulHeuristicResult_t, wavesCount, float);
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96);

// ---- NCCL

#ifdef NCCL_MAJOR

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

// Compiles the way in which a configuration is written.
inline ncclConfig_t NonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

#endif

#undef SOFTMOE_IS
#undef SOFTMOE_VALUE
#undef SOFTMOE_MEMBER

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_TOOLKIT_API_H_
