// SPDX-License-Identifier: Apache-2.0
//
// rank_devices.h - which device each rank computes on, and what carries arrays
// between them. Ranks that are more than the devices of their machine share
// them: each has a model of its own there, and they take turns.
#ifndef SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_
#define SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_

#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/updater.h"

namespace softmoe::trainer {

// How many of the processes before this one run on the same machine: what
// MakeDevice counts devices by. All of them call it.
int RankOnMachine(optimized::Communicator& processes);

struct DeviceSharing {
  int ranks_on_device = 1;  // the most that share a device of this process
  int devices = 0;          // on which all ranks compute; 0: the CPU
};

// How ranks share devices. All processes call it.
//
//   ranks  that are threads of this process, at least 1
DeviceSharing ShareDevices(const optimized::Device& device, int ranks,
                           optimized::Communicator& processes);

// What a user asks to carry gradients and parameters between ranks.
enum class ExchangeChoice {
  kAuto,  // NCCL wherever it can, else memory of the host
  kHost,
  kNccl,
};
// "auto", as options have it.
const char* NameOf(ExchangeChoice choice);

// What carries in a run. All processes call it, with the same choice, and get
// the same.
//
//   ranks      that are threads of this process
//   on_device  ranks_on_device of ShareDevices
// Errors       where NCCL was chosen and cannot be, on every process:
//              ConfigError on the CPU; EnvironmentError if ranks share a
//              device, which NCCL refuses, or if the library is missing or too
//              old.
optimized::CarrierKind ChooseCarrier(ExchangeChoice choice,
                                     const optimized::Device& device, int ranks,
                                     int on_device,
                                     optimized::Communicator& processes);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_DEVICES_H_
