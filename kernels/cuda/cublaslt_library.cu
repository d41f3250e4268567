// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>
#include <dlfcn.h>

#include "kernels/cuda/nvidia_libraries.h"

namespace softmoe::kernels {
namespace {

#define SOFTMOE_TEXT_OF(x) #x
#define SOFTMOE_TEXT(x) SOFTMOE_TEXT_OF(x)
constexpr char kName[] = "libcublasLt.so." SOFTMOE_TEXT(CUBLAS_VER_MAJOR);
void* handle = nullptr;  // from dlopen

CublasLtLibrary Load() {
  std::string broken;  // the first that is there
  for (const std::string& path :
       LibraryPaths(kName, {"cublas", "cu" SOFTMOE_TEXT(CUBLAS_VER_MAJOR)})) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return {.path = path};
    const std::string error = dlerror();
    if (broken.empty() && !error.starts_with(path + kNotThere)) broken = error;
  }
  return {.missing =
              (broken.empty() ? std::string(kName) + " " + kLibraryPlaces
                              : "it is there and cannot be loaded: " + broken) +
              "; install cuBLAS, or set CUDA_HOME"};
}

void* Find(const char* function) {
  return LoadCublasLt().path.empty() ? nullptr : dlsym(handle, function);
}

}  // namespace

const CublasLtLibrary& LoadCublasLt() {
  static const CublasLtLibrary library = Load();
  return library;
}

}  // namespace softmoe::kernels

// Calls one of the library's functions and returns what it returns.
#define SOFTMOE_PASS_ON(Function, ...)                                  \
  static const auto function = reinterpret_cast<decltype(&::Function)>( \
      softmoe::kernels::Find(#Function));                               \
  return function == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED            \
                             : function(__VA_ARGS__)

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  SOFTMOE_PASS_ON(cublasLtCreate, handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  SOFTMOE_PASS_ON(cublasLtDestroy, handle);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t stride) {
  SOFTMOE_PASS_ON(cublasLtMatrixLayoutCreate, layout, type, rows, columns,
                  stride);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  SOFTMOE_PASS_ON(cublasLtMatrixLayoutDestroy, layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
    const void* value, size_t size) {
  SOFTMOE_PASS_ON(cublasLtMatrixLayoutSetAttribute, layout, attribute, value,
                  size);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  SOFTMOE_PASS_ON(cublasLtMatmulDescCreate, description, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  SOFTMOE_PASS_ON(cublasLtMatmulDescDestroy, description);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
    const void* value, size_t size) {
  SOFTMOE_PASS_ON(cublasLtMatmulDescSetAttribute, description, attribute, value,
                  size);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(
    cublasLtMatmulPreference_t* preference) {
  SOFTMOE_PASS_ON(cublasLtMatmulPreferenceCreate, preference);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(
    cublasLtMatmulPreference_t preference) {
  SOFTMOE_PASS_ON(cublasLtMatmulPreferenceDestroy, preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
    size_t size) {
  SOFTMOE_PASS_ON(cublasLtMatmulPreferenceSetAttribute, preference, attribute,
                  value, size);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t results[], int* found) {
  SOFTMOE_PASS_ON(cublasLtMatmulAlgoGetHeuristic, handle, operation, a, b, c, d,
                  preference, wanted, results, found);
}

cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
    const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
    cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
    cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
    const cublasLtMatmulAlgo_t* algorithm, void* workspace,
    size_t workspace_size, cudaStream_t stream) {
  SOFTMOE_PASS_ON(cublasLtMatmul, handle, operation, alpha, a, a_layout, b,
                  b_layout, beta, c, c_layout, d, d_layout, algorithm,
                  workspace, workspace_size, stream);
}

size_t cublasLtGetVersion() {
  static const auto function =
      reinterpret_cast<decltype(&::cublasLtGetVersion)>(
          softmoe::kernels::Find("cublasLtGetVersion"));
  return function == nullptr ? 0 : function();
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  static const auto function =
      reinterpret_cast<decltype(&::cublasLtGetStatusString)>(
          softmoe::kernels::Find("cublasLtGetStatusString"));
  return function == nullptr ? softmoe::kernels::LoadCublasLt().missing.c_str()
                             : function(status);
}

}  // extern "C"
