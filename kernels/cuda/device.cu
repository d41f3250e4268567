// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

__global__ void NothingKernel() {}

// What was enqueued before may have failed.
void CheckRun(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw NumericsError(std::string("on the device: ") +
                      cudaGetErrorString(error));
}

}  // namespace

std::string WhyNoDevice() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();  // or the next call would return it again
    return std::string("no CUDA device: ") +
           (error == cudaSuccess ? "there is none" : cudaGetErrorString(error));
  }
  // Fails for an architecture that this program holds no code for.
  cudaFuncAttributes attributes;
  const cudaError_t code = cudaFuncGetAttributes(&attributes, NothingKernel);
  if (code == cudaSuccess) return "";
  (void)cudaGetLastError();
  return DeviceName() + ": " + cudaGetErrorString(code);
}

std::string DeviceName() {
  cudaDeviceProp properties;
  CheckCuda(cudaGetDeviceProperties(&properties, 0), "device 0");
  int driver = 0;
  CheckCuda(cudaDriverGetVersion(&driver), "device 0");
  return std::string(properties.name) + ", sm_" +
         std::to_string(properties.major) + std::to_string(properties.minor) +
         ", driver " + std::to_string(driver / 1000) + "." +
         std::to_string(driver % 1000 / 10);
}

cudaStream_t DeviceStream() {
  static const cudaStream_t stream = [] {
    cudaStream_t created = nullptr;
    CheckCuda(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking),
              "a stream");
    return created;
  }();
  return stream;
}

void* AllocateOnDevice(size_t bytes) {
  void* memory = nullptr;
  CheckCuda(cudaMalloc(&memory, bytes), "device memory");
  return memory;
}

void FreeOnDevice(void* memory) noexcept { (void)cudaFree(memory); }

int64_t FreeMemory() {
  size_t free = 0, total = 0;
  CheckCuda(cudaMemGetInfo(&free, &total), "device memory");
  return static_cast<int64_t>(free);
}

void CopyAcrossDevice(void* to, const void* from, size_t bytes) {
  CopyAcross(to, from, bytes, DeviceStream());
}

void* AllocateOnHost(size_t bytes) {
  void* memory = nullptr;
  CheckCuda(cudaMallocHost(&memory, bytes), "page-locked memory");
  return memory;
}

void FreeOnHost(void* memory) noexcept { (void)cudaFreeHost(memory); }

void StartCopy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  CheckRun(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

void CopyAcross(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  StartCopy(to, from, bytes, stream);
  FinishStream(stream);
}

void CopyOnDevice(void* to, const void* from, size_t bytes,
                  cudaStream_t stream) {
  if (bytes == 0) return;
  CheckRun(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
}

void ClearOnDevice(void* memory, size_t bytes, cudaStream_t stream) {
  if (bytes > 0) CheckRun(cudaMemsetAsync(memory, 0, bytes, stream));
}

void FinishStream(cudaStream_t stream) {
  CheckRun(cudaStreamSynchronize(stream));
}

void WaitForStream(cudaStream_t stream) noexcept {
  (void)cudaStreamSynchronize(stream);
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
