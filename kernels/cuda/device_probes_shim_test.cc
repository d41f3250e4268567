// SPDX-License-Identifier: Apache-2.0
//
// What devices are asked, under sanitizers. What they answer is looked at in
// device_facts_test.cc and device_probes_test.cc.
#include <cstdio>

#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/device_probes.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/simulator.h"
#include "kernels/simt/shim/variant.h"

namespace softmoe::kernels {
namespace {

int Main() {
  bool right = isa_shim::RequireDevices() == isa_shim::RequireDevice().count;
  for (const auto schedule :
       {simt::Schedule::kAscending, simt::Schedule::kDescending,
        simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule);
    for (const DeviceProbe& probe : isa_shim::AskDevice()) {
      if (probe.holds) continue;
      std::printf("%s: %s\n", probe.name.c_str(), probe.answer.c_str());
      right = false;
    }
  }
  if (simt::LiveAllocations() != 0) {
    std::printf("memory is left\n");
    right = false;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace softmoe::kernels

int main() { return softmoe::simt::ExitStatus(softmoe::kernels::Main); }
