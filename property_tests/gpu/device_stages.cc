// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>

#include "core/errors.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/device_probes.h"
#include "kernels/cuda/rank_link.h"
#include "property_tests/gpu/stages.h"

namespace softmoe::gpu {
namespace {

namespace device = ::softmoe::kernels::SOFTMOE_DEVICE;

#define SOFTMOE_TEXT_OF(x) #x
#define SOFTMOE_TEXT(x) SOFTMOE_TEXT_OF(x)
constexpr bool kSimulated =
    std::string_view(SOFTMOE_TEXT(SOFTMOE_DEVICE)) == "isa_shim";

std::string Today() {
  const std::time_t now =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm date = {};
  (void)gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1,
                     date.tm_mday);
}

}  // namespace

bool IsSimulated() { return kSimulated; }

bool TellFacts(const StageContext& context) {
  const kernels::DeviceFacts facts = device::RequireDevice();
  SOFTMOE_CHECK((facts.backend == "simulated") == kSimulated) << facts.backend;
  context.tell({{"kind", "facts"},
                {"model", facts.model},
                {"architecture", facts.architecture},
                {"libraries", facts.libraries},
                {"memory_bytes", device::FreeMemory()},
                {"date", Today()}});
  return true;
}

bool TellProbes(const StageContext& context) {
  bool all = true;
  for (const kernels::DeviceProbe& probe : device::AskDevice()) {
    context.tell({{"kind", "probe"},
                  {"name", probe.name},
                  {"passed", probe.holds},
                  {"answer", probe.answer}});
    all = all && probe.holds;
  }
  return all;
}

std::string WhyNoNccl() { return device::WhyNoLink(); }

}  // namespace softmoe::gpu
