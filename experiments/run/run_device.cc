// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/run_device.h"

#include <cstdint>
#include <sstream>
#include <string>

#include "core/errors.h"
#include "core/process/isolated_call.h"

namespace softmoe::experiments {
namespace {

// The driver maps terabytes of addresses, and initialising many devices takes
// time.
constexpr IsolationLimits kLimits = {.memory_bytes = int64_t{1} << 46,
                                     .seconds = 120};

constexpr char kFailed[] = "!";  // prefix of an error that the child reports

}  // namespace

optimized::DeviceIdentity IdentifyDevice(const RuntimeConfig& runtime) {
  if (runtime.device != "cuda") {
    return optimized::MakeDevice(runtime)->identity();
  }
  const IsolatedResult result = CallIsolated(
      [&]() -> std::string {
        try {
          const auto device = optimized::MakeDevice(runtime);
          const optimized::DeviceIdentity there = device->identity();
          return there.isa + "\n" + there.backend + "\n" + there.model + "\n" +
                 there.libraries + "\n";
        } catch (const EnvironmentError& error) {
          return kFailed + std::string(error.what());
        }
      },
      kLimits);
  if (!result.completed) {
    throw EnvironmentError("device \"cuda\": the process that queried it " +
                           result.failure + "; look at it with nvidia-smi");
  }
  if (result.value.starts_with(kFailed)) {
    throw EnvironmentError(result.value.substr(1));
  }
  optimized::DeviceIdentity identity;
  std::istringstream lines(result.value);
  std::getline(lines, identity.isa);
  std::getline(lines, identity.backend);
  std::getline(lines, identity.model);
  std::getline(lines, identity.libraries);
  return identity;
}

}  // namespace softmoe::experiments
