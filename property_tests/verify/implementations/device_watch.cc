// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/implementations/device_watch.h"

#include "core/errors.h"

namespace softmoe::verify {

TensorMap DeviceWatch::Run(const std::function<TensorMap()>& run) {
  if (!lost_.empty()) {
    throw EnvironmentError("the device failed in an earlier case (" + lost_ +
                           "), and this process can no longer use it; run "
                           "again from the REPRO line of that case");
  }
  try {
    return run();
  } catch (const NumericsError& error) {
    // A kernel that wrote where it must not has left the device as it was.
    try {
      finish_();
    } catch (const Error&) {
      lost_ = error.what();
    }
    throw;
  }
}

}  // namespace softmoe::verify
