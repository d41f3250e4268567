// SPDX-License-Identifier: Apache-2.0
//
// device.h - what running single kernels needs of this machine's CUDA device: a
// stream, memory, copies. device_facts.h says whether there is one.
#ifndef SOFTMOE_KERNELS_CUDA_DEVICE_H_
#define SOFTMOE_KERNELS_CUDA_DEVICE_H_

#include <cstddef>
#include <cstdint>

struct CUstream_st;  // cudaStream_t and cudaEvent_t are pointers to these
struct CUevent_st;

// isa_shim is the same source on a simulated device (simt/device/README.md).
//
//   UseDevice         chooses the device of this number, from 0, for all that
//                     the calling thread does. Errors: EnvironmentError.
//   DeviceStream      the stream on which single kernels run, one for the
//                     process, of the device in use at the first call. Errors:
//                     EnvironmentError.
//   MakeStream        another, of the device in use. Errors: EnvironmentError.
//   FreeStream        frees it; nothing may be queued on it any more
//   AllocateOnDevice  allocates memory of the device. Errors: EnvironmentError,
//                     with what to look at.
//   FreeMemory        bytes that AllocateOnDevice may still give. Errors:
//                     EnvironmentError.
//   AllocateOnHost    allocates memory of the host that StartCopy takes: it is
//                     page-locked. Errors: EnvironmentError.
//   CopyAcross        copies between host and device, in either direction, once
//                     what was enqueued on `stream` is done, and waits. Errors:
//                     NumericsError if some of it failed (an illegal address,
//                     say: the process cannot use the device any more).
//   CopyAcrossDevice  the same on DeviceStream
//   StartCopy         enqueues such a copy and does not wait for it. The host's
//                     memory is from AllocateOnHost, and in use until the host
//                     has waited.
//   CopyOnDevice, ClearOnDevice
//                     enqueue a copy within the device's memory, zeros
//   FinishStream      waits until all that is on `stream` is done. Errors: as
//                     CopyAcross.
//   WaitForStream     the same, but reports no failure
//   MakeEvent, FreeEvent
//                     an event of the device in use. Errors: EnvironmentError.
//   RecordEvent       enqueues the event
//   FinishEvent       waits until what was on the stream before the event was
//                     last recorded is done, if it ever was. Errors: as
//                     CopyAcross.
#define SOFTMOE_DECLARE_DEVICE(isa)                                    \
  namespace isa {                                                      \
  void UseDevice(int number);                                          \
  CUstream_st* DeviceStream();                                         \
  CUstream_st* MakeStream();                                           \
  void FreeStream(CUstream_st* stream) noexcept;                       \
  void* AllocateOnDevice(size_t bytes);                                \
  void FreeOnDevice(void* memory) noexcept;                            \
  int64_t FreeMemory();                                                \
  void* AllocateOnHost(size_t bytes);                                  \
  void FreeOnHost(void* memory) noexcept;                              \
  void StartCopy(void* to, const void* from, size_t bytes,             \
                 CUstream_st* stream);                                 \
  void CopyAcross(void* to, const void* from, size_t bytes,            \
                  CUstream_st* stream);                                \
  void CopyAcrossDevice(void* to, const void* from, size_t bytes);     \
  void CopyOnDevice(void* to, const void* from, size_t bytes,          \
                    CUstream_st* stream);                              \
  void ClearOnDevice(void* memory, size_t bytes, CUstream_st* stream); \
  void FinishStream(CUstream_st* stream);                              \
  void WaitForStream(CUstream_st* stream) noexcept;                    \
  CUevent_st* MakeEvent();                                             \
  void FreeEvent(CUevent_st* event) noexcept;                          \
  void RecordEvent(CUevent_st* event, CUstream_st* stream);            \
  void FinishEvent(CUevent_st* event);                                 \
  }                                                                    \
  static_assert(true)

namespace softmoe::kernels {

// Where kernels are enqueued, to run one after the other.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual CUstream_st* stream() = 0;
};

SOFTMOE_DECLARE_DEVICE(isa_cuda);
SOFTMOE_DECLARE_DEVICE(isa_shim);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_DEVICE_H_
