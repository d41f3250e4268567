// SPDX-License-Identifier: Apache-2.0
//
// device_watch.h - notices when this process has lost its device: after an
// illegal address, every call fails, whatever it computes, and each would be
// taken for another wrong answer.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_WATCH_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_WATCH_H_

#include <functional>
#include <string>

#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

// One for each device that the process uses.
class DeviceWatch {
 public:
  // `finish` waits for all work on the device, and throws if the device does
  // not answer.
  explicit DeviceWatch(void (*finish)()) : finish_(finish) {}

  // Returns the result of `run`, which calls kernels of the device.
  // Errors   those of `run`, which fail the case that lost the device; later,
  //          without a call of `run`, EnvironmentError, which ends a campaign.
  TensorMap Run(const std::function<TensorMap()>& run);

 private:
  void (*finish_)();
  std::string lost_;  // the error of the case that lost the device
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_DEVICE_WATCH_H_
