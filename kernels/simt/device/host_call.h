// SPDX-License-Identifier: Apache-2.0
//
// host_call.h - lets several threads of the host call the simulated devices:
// one at a time, the others wait.
//
// To TSan this does not order the calls of two threads, as no device promises
// it: TSan does not see the lock, and ignores what the simulator does for
// itself meanwhile. What runs on a stream counts as always (work_queue.h).
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_HOST_CALL_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_HOST_CALL_H_

namespace softmoe::simt {

// A call lasts as long as one of these lives. Calls may be nested.
class HostCall {
 public:
  HostCall();
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
};

// Within a call: what other threads may wait for has changed.
void NoteChange();

// Within a call that is not nested: lets others call until something has
// changed. False if a second went by without.
bool WaitForChange();

// Whether this thread is within a call. For a signal's handler, too.
bool IsInHostCall();

// The device that the calling thread has chosen (cudaSetDevice), 0 by default.
int CurrentDevice();
void SetCurrentDevice(int device);

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_HOST_CALL_H_
