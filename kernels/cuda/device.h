// SPDX-License-Identifier: Apache-2.0
//
// device.h - what running single kernels needs of this machine's CUDA device:
// whether there is one, its memory, copies.
#ifndef SOFTMOE_KERNELS_CUDA_DEVICE_H_
#define SOFTMOE_KERNELS_CUDA_DEVICE_H_

#include <cstddef>
#include <string>

namespace softmoe::kernels::isa_cuda {

// Why no kernel of ours can run here: no driver, no device, an architecture
// that nothing was compiled for. "" if device 0 can.
std::string WhyNoDevice();

// "NVIDIA H100 80GB HBM3, sm_90, driver 13.0": for records. Device 0.
std::string DeviceName();

// Allocates memory of the device. Errors: EnvironmentError, with what to look
// at.
void* AllocateOnDevice(size_t bytes);
void FreeOnDevice(void* memory) noexcept;

// Copies between host and device, in either direction, once the kernels that
// were enqueued before are done. Errors: NumericsError if one of them failed
// (an illegal address, say: the process cannot use the device any more).
void CopyAcrossDevice(void* to, const void* from, size_t bytes);

}  // namespace softmoe::kernels::isa_cuda

#endif  // SOFTMOE_KERNELS_CUDA_DEVICE_H_
