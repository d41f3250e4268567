// SPDX-License-Identifier: Apache-2.0
//
// run_device.h - what the device of a grid's runs is, without using it here.
#ifndef SOFTMOE_EXPERIMENTS_RUN_RUN_DEVICE_H_
#define SOFTMOE_EXPERIMENTS_RUN_RUN_DEVICE_H_

#include "core/config/config.h"
#include "optimized/device.h"

namespace softmoe::experiments {

// The identity of the device that `runtime` asks for. A GPU is asked in a child
// process: children of a process that has used one cannot use it, and a grid
// has children (grid_workers.h). Errors: as optimized::MakeDevice.
optimized::DeviceIdentity IdentifyDevice(const RuntimeConfig& runtime);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_RUN_DEVICE_H_
