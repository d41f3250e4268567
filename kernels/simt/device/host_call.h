// SPDX-License-Identifier: Apache-2.0
//
// host_call.h - how the host calls the simulated devices and libraries: threads
// take turns; each call is counted, and may be refused, with the reason.
//
// To TSan, taking turns does not order calls, as no device promises that: TSan
// does not see the lock, and ignores what the simulator does for itself
// meanwhile. What runs on a stream counts as always (work_queue.h).
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_HOST_CALL_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_HOST_CALL_H_

namespace softmoe::simt {

// A call by the host, which lasts as long as this object. Calls may be nested.
class HostCall {
 public:
  HostCall();
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
};

// Within a call: notes a change that other threads may be waiting for.
void NoteChange();

// Within a call that is not nested: lets other threads call until something has
// changed, for a second at most.
void WaitForChange();

// Within a call: returns the seconds since a thread began to wait; 0 if
// something has changed since then.
double SecondsWithoutChange();

// Whether this thread is within a call. May be called in a signal handler.
bool IsInHostCall();

// The device that the calling thread has chosen (cudaSetDevice), 0 by default.
int CurrentDevice();
void SetCurrentDevice(int device);

// Within a call of `call`, such as "cudaMalloc": counts it. Returns the error
// that FailCall (device.h) ordered for it, or 0.
int CountCall(const char* call);

// The last error that one library returned to one thread, and the reason.
// Errors are the library's own numbers; 0 is success in all libraries.
class Refusals {
 public:
  // Begins most functions of a library, within their HostCall: counts the call.
  // The function must return any result but 0: an error that a test ordered, or
  // `after_failure` if `device` has failed.
  int Begin(const char* call, int after_failure, int device);

  // Notes the reason, and returns `error`.
  int Refuse(int error, const char* format, ...)
      __attribute__((format(printf, 3, 4)));

  // "NAME: why" if `error` is the last one, else the name.
  const char* Text(int error, const char* name);

  int last_error() const { return last_error_; }
  void Forget() { last_error_ = 0; }

 private:
  int last_error_ = 0;
  int explained_ = 0;
  char why_[1300] = {};
  char text_[1400] = {};
};

// The refusals of one library, in its own type of errors; after a failure of
// the device, its calls return `kAfterFailure`.
template <typename Error, Error kAfterFailure>
struct LibraryRefusals {
  using Status = Error;

  // Each thread has its own, as on a device.
  static Refusals& Get() {
    static thread_local Refusals refusals;
    return refusals;
  }
  static Status Begin(const char* call, int device = CurrentDevice()) {
    return static_cast<Status>(Get().Begin(call, kAfterFailure, device));
  }
};

// Calls Refuse of the LibraryRefusals that a source file calls Library.
#define SOFTMOE_REFUSE(error, ...) \
  static_cast<Library::Status>(Library::Get().Refuse(error, __VA_ARGS__))

// Returns what failed on `device`, so that later calls that concern it fail;
// null if nothing did, or if there is no such device. Other devices go on.
const char* DeviceFailure(int device);
void SetDeviceFailure(int device, const char* what);
void ForgetDeviceFailures();

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_HOST_CALL_H_
