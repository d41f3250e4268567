// SPDX-License-Identifier: Apache-2.0
//
// rank_devices.h - which device each rank computes on. Ranks that are more than
// the devices of their machine share them: each has a model of its own there,
// and they take turns.
#ifndef SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_
#define SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_

#include "optimized/communicator/communicator.h"
#include "optimized/device.h"

namespace softmoe::trainer {

// How many of the processes before this one run on the same machine: what
// MakeDevice counts devices by. All of them call it.
int RankOnMachine(optimized::Communicator& processes);

// The most ranks that share a device of this process, at least 1. All processes
// call it.
//
//   ranks  that are threads of this process, at least 1
int RanksOnDevice(const optimized::Device& device, int ranks,
                  optimized::Communicator& processes);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_
