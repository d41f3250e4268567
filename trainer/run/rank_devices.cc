// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_devices.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/shards.h"

namespace softmoe::trainer {
namespace {

// Returns the first 255 bytes of every process's `text`, in the order of ranks.
std::vector<std::string> GatherTexts(const std::string& text,
                                     optimized::Communicator& processes) {
  constexpr int kSize = 256;
  std::vector<char> all(static_cast<size_t>(kSize * processes.size()));
  text.copy(all.data() + kSize * processes.rank(), kSize - 1);
  processes.Gather<char>(
      optimized::ShareOut(kSize * processes.size(), kSize, processes.size()),
      all);
  std::vector<std::string> texts;
  for (int rank = 0; rank < processes.size(); ++rank) {
    texts.emplace_back(all.data() + kSize * rank);
  }
  return texts;
}

std::string ThisMachine() {
  char name[256] = "";
  (void)gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

int RankOnMachine(optimized::Communicator& processes) {
  const std::vector<std::string> machines =
      GatherTexts(ThisMachine(), processes);
  return static_cast<int>(std::count(machines.begin(),
                                     machines.begin() + processes.rank(),
                                     machines[processes.rank()]));
}

DeviceSharing ShareDevices(const optimized::Device& device, int ranks,
                           optimized::Communicator& processes) {
  if (device.id().empty()) return {};  // the CPU
  // How many ranks of a process share a device: ranks / count(), rounded up.
  const int of_process = ranks / device.count() + (ranks % device.count() != 0);
  const std::vector<std::string> devices =
      GatherTexts(device.id() + " " + ThisMachine(), processes);
  const auto count = std::ranges::count(devices, devices[processes.rank()]);
  const std::set<std::string> used(devices.begin(), devices.end());
  return {.ranks_on_device = of_process * static_cast<int>(count),
          .devices = processes.size() == 1 ? std::min(ranks, device.count())
                                           : static_cast<int>(used.size())};
}

const char* NameOf(ExchangeChoice choice) {
  switch (choice) {
    case ExchangeChoice::kAuto:
      return "auto";
    case ExchangeChoice::kHost:
      return "host";
    case ExchangeChoice::kNccl:
      return "nccl";
  }
  return "";
}

namespace {

// Throws if NCCL cannot carry to and from this process.
void RequireNccl(const optimized::Device& device, int on_device) {
  const std::string why = device.WhyNoLink();
  const std::string option = "--exchange nccl: ";
  const std::string remedy =
      ", or leave --exchange out: memory of the host gives the same bits";
  if (device.id().empty()) throw ConfigError(option + why + remedy);
  if (on_device > 1) {
    throw EnvironmentError(
        option + std::to_string(on_device) +
        " ranks share a device, but NCCL needs one for each rank; start at "
        "most as many ranks as there are devices" +
        remedy);
  }
  if (!why.empty()) throw EnvironmentError(option + why + remedy);
}

}  // namespace

optimized::CarrierKind ChooseCarrier(ExchangeChoice choice,
                                     const optimized::Device& device, int ranks,
                                     int on_device,
                                     optimized::Communicator& processes) {
  using optimized::CarrierKind;
  if (ranks * processes.size() == 1 || choice == ExchangeChoice::kHost) {
    return CarrierKind::kHost;
  }
  if (choice == ExchangeChoice::kNccl) {
    RequireNccl(device, on_device);
    // Waits before any process writes, since another one may have thrown.
    processes.Barrier();
    return CarrierKind::kNccl;
  }
  std::vector<uint8_t> can(static_cast<size_t>(processes.size()));
  can[static_cast<size_t>(processes.rank())] =
      on_device == 1 && device.WhyNoLink().empty();
  processes.Gather<uint8_t>(
      optimized::ShareOut(processes.size(), 1, processes.size()), can);
  return std::ranges::count(can, 0) == 0 ? CarrierKind::kNccl
                                         : CarrierKind::kHost;
}

}  // namespace softmoe::trainer
