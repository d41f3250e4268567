// SPDX-License-Identifier: Apache-2.0
//
// run_device.h - identifies the device of a grid's runs without using it in
// this process.
#ifndef SOFTMOE_EXPERIMENTS_RUN_RUN_DEVICE_H_
#define SOFTMOE_EXPERIMENTS_RUN_RUN_DEVICE_H_

#include "core/config/config.h"
#include "optimized/device.h"

namespace softmoe::experiments {

// Identifies the device that `runtime` asks for. A GPU is queried in a child
// process: a process that has used a GPU cannot fork children that use it, and
// a grid forks (grid_workers.h). Errors: as optimized::MakeDevice.
optimized::DeviceIdentity IdentifyDevice(const RuntimeConfig& runtime);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_RUN_DEVICE_H_
