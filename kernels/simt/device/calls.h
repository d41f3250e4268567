// SPDX-License-Identifier: Apache-2.0
//
// calls.h - how every function of the simulated libraries begins and ends,
// within a HostCall: counting, failures that a test ordered, and why something
// is refused.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_CALLS_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_CALLS_H_

namespace softmoe::simt {

// Counts a call. Returns the error that FailCall ordered for it, or 0.
int CountCall(const char* call);

// The last error that one library returned to one thread, and why.
class Refusals {
 public:
  // Notes why, and returns `error`.
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

// What failed on the device, so that all later calls fail; null if nothing has.
const char* DeviceFailure();

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_CALLS_H_
