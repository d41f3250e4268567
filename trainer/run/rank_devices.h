// SPDX-License-Identifier: Apache-2.0
//
// rank_devices.h - which device each rank computes on, and what carries arrays
// between ranks. If a machine has more ranks than devices, ranks share them:
// each has its own model on the device, and they take turns.
#ifndef SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_
#define SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_

#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/updater.h"

namespace softmoe::trainer {

// Returns how many of the processes before this one run on the same machine, by
// which MakeDevice counts devices. All processes must call it.
int RankOnMachine(optimized::Communicator& processes);

struct DeviceSharing {
  int ranks_on_device = 1;  // the most that share a device of this process
  int devices = 0;          // that all ranks together compute on; 0: the CPU
};

// Returns how ranks share devices. All processes must call it.
//
//   ranks  number of ranks that are threads of this process, at least 1
DeviceSharing ShareDevices(const optimized::Device& device, int ranks,
                           optimized::Communicator& processes);

// The user's choice of what carries gradients and parameters between ranks.
enum class ExchangeChoice {
  kAuto,  // NCCL wherever it can, else memory of the host
  kHost,
  kNccl,
};
// Returns the name in options, e.g. "auto".
const char* NameOf(ExchangeChoice choice);

// Returns what carries arrays in a run. All processes must call it, with the
// same choice, and get the same result.
//
//   ranks      number of ranks that are threads of this process
//   on_device  ranks_on_device of ShareDevices
// Errors       if several ranks chose NCCL and it is impossible: ConfigError on
//              the CPU; EnvironmentError if ranks share a device, which NCCL
//              refuses, or if the library is missing or too old; RankError on
//              processes where it is possible.
optimized::CarrierKind ChooseCarrier(ExchangeChoice choice,
                                     const optimized::Device& device, int ranks,
                                     int on_device,
                                     optimized::Communicator& processes);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_
