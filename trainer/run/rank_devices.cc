// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_devices.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "optimized/communicator/shards.h"

namespace softmoe::trainer {
namespace {

// `text` of every process, in the order of their ranks; cut off after 255 bytes.
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

int RanksOnDevice(const optimized::Device& device, int ranks,
                  optimized::Communicator& processes) {
  if (device.id().empty()) return 1;  // the CPU
  // Of one process, those that count() devices do not hold.
  const int of_process = ranks / device.count() + (ranks % device.count() != 0);
  const std::vector<std::string> devices =
      GatherTexts(device.id() + " " + ThisMachine(), processes);
  return of_process * static_cast<int>(std::ranges::count(
                          devices, devices[processes.rank()]));
}

}  // namespace softmoe::trainer
