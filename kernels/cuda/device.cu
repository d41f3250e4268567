// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// What was enqueued before may have failed.
void CheckRun(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw NumericsError(std::string("on the device: ") +
                      cudaGetErrorString(error));
}

}  // namespace

void UseDevice(int number) {
  CheckCuda(cudaSetDevice(number), "choosing a device");
}

cudaStream_t DeviceStream() {
  static const cudaStream_t stream = MakeStream();
  return stream;
}

cudaStream_t MakeStream() {
  cudaStream_t created = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking),
            "a stream");
  return created;
}

void FreeStream(cudaStream_t stream) noexcept {
  (void)cudaStreamDestroy(stream);
}

void* AllocateOnDevice(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // or the next call would return it again
    size_t free = 0, total = 0;
    CheckCuda(cudaMemGetInfo(&free, &total), "device memory");
    throw EnvironmentError(
        "device memory: " + std::to_string(bytes) + " bytes more are needed, " +
        std::to_string(free) + " of " + std::to_string(total) +
        " are free; take a device with more, or make the model or its balance "
        "groups smaller");
  }
  CheckCuda(error, "device memory");
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
