// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device.h"
#include "kernels/cuda/launch.h"

namespace softmoe::kernels::SOFTMOE_ISA {

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
    (void)cudaGetLastError();  // or it stays the last error
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
  const cudaError_t error = cudaMallocHost(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // or it stays the last error
    throw EnvironmentError(
        "page-locked memory of the host: " + std::to_string(bytes) +
        " bytes more are needed, and there are none; end "
        "what else uses this machine's memory");
  }
  CheckCuda(error, "page-locked memory");
  return memory;
}

void FreeOnHost(void* memory) noexcept { (void)cudaFreeHost(memory); }

void StartCopy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
            "a copy");
}

void CopyAcross(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  StartCopy(to, from, bytes, stream);
  FinishStream(stream);
}

void CopyOnDevice(void* to, const void* from, size_t bytes,
                  cudaStream_t stream) {
  if (bytes == 0) return;
  CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
            "a copy");
}

void ClearOnDevice(void* memory, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return;
  CheckCuda(cudaMemsetAsync(memory, 0, bytes, stream), "zeros");
}

void FinishStream(cudaStream_t stream) {
  CheckCuda(cudaStreamSynchronize(stream), "waiting");
}

void WaitForStream(cudaStream_t stream) noexcept {
  (void)cudaStreamSynchronize(stream);
}

cudaEvent_t MakeEvent() {
  cudaEvent_t created = nullptr;
  CheckCuda(cudaEventCreateWithFlags(&created, cudaEventDisableTiming),
            "an event");
  return created;
}

void FreeEvent(cudaEvent_t event) noexcept { (void)cudaEventDestroy(event); }

void RecordEvent(cudaEvent_t event, cudaStream_t stream) {
  CheckCuda(cudaEventRecord(event, stream), "an event");
}

void FinishEvent(cudaEvent_t event) {
  cudaError_t state = cudaEventQuery(event);  // mostly it is done
  if (state == cudaErrorNotReady) state = cudaEventSynchronize(event);
  CheckCuda(state, "waiting");
}

}  // namespace softmoe::kernels::SOFTMOE_ISA
