// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/device_probes.h"
#include "kernels/cuda/rank_link.h"
#include "optimized/buffer.h"
#include "property_tests/gpu/stage_bodies.h"

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

bool TellProbe(const StageContext& context, const kernels::DeviceProbe& probe) {
  context.tell({{"kind", "probe"},
                {"name", probe.name},
                {"passed", probe.holds},
                {"answer", probe.answer}});
  return probe.holds;
}

// ---- NCCL
//
// A communicator of one rank sends to itself what ranks send to each other.
// This makes every NCCL call on this machine and checks every answer. Faults
// that only several ranks can show are not tested here.

using kernels::LinkPart;
using Bytes = optimized::Buffer<uint8_t>;

// In bytes, not multiples of anything; slightly over 3 MB spans several of
// NCCL's steps.
constexpr int64_t kSizes[] = {1, 4096, 3 * 1000 * 1000 + 1};

std::vector<uint8_t> Numbered(int64_t size, uint8_t first) {
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

Bytes OnDevice(const std::vector<uint8_t>& bytes) {
  Bytes array(static_cast<int64_t>(bytes.size()));
  device::CopyAcrossDevice(array.data(), bytes.data(), bytes.size());
  return array;
}

class Stream {
 public:
  Stream() : stream_(device::MakeStream()) {}
  ~Stream() { device::FreeStream(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  CUstream_st* get() const { return stream_; }

 private:
  CUstream_st* stream_;
};

std::unique_ptr<kernels::RankLink> JoinAlone(const Stream& stream) {
  return device::JoinLink(device::MakeLinkId(), /*rank=*/0, /*ranks=*/1,
                          stream.get(), [] {});
}

LinkPart All(const Bytes& array) { return {array.data(), array.bytes()}; }

// "" if `array` holds what was sent.
std::string Difference(const std::string& what, const Bytes& array,
                       const std::vector<uint8_t>& sent) {
  std::vector<uint8_t> got(sent.size());
  device::CopyAcrossDevice(got.data(), array.data(), got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == sent[i]) continue;
    return fmt::format("{} of {} bytes: byte {} is {}, and was {}; ", what,
                       sent.size(), i, got[i], sent[i]);
  }
  return "";
}

// Tests send, receive and broadcast, in all sizes. `planted`: the last byte
// does not arrive, to test this test.
std::string WhatCameWrong(bool planted) {
  const Stream stream;
  const auto link = JoinAlone(stream);
  std::string wrong;
  for (const int64_t size : kSizes) {
    const std::vector<uint8_t> sent = Numbered(size, 7);
    const Bytes from = OnDevice(sent), to = OnDevice(Numbered(size, 100));
    device::FinishStream(device::DeviceStream());
    link->Follow();
    link->Exchange({{All(from)}}, {{All(to)}});
    link->Gather({{All(from)}});
    link->Join();
    link->Finish();
    if (planted) {
      device::ClearOnDevice(to.data() + size - 1, 1, device::DeviceStream());
    }
    wrong += Difference("what was exchanged", to, sent) +
             Difference("what was gathered", from, sent);
  }
  return wrong;
}

// Tests that an aborted link ends at once, reports that, and can be replaced.
std::string WhatAbortLeaves() {
  const Stream stream;
  const auto link = JoinAlone(stream);
  link->Abort();
  const Bytes array = OnDevice(Numbered(1, 1));
  try {
    link->Gather({{All(array)}});
  } catch (const EnvironmentError&) {
    return WhatCameWrong(/*planted=*/false);
  }
  return "a link that was aborted gathers; ";
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
  if (facts.count > 1) {
    fmt::print(stderr,
               "the first of {} devices; CUDA_VISIBLE_DEVICES=N in the "
               "environment takes another\n",
               facts.count);
  }
  return true;
}

bool TellProbes(const StageContext& context) {
  bool all = true;
  for (const kernels::DeviceProbe& probe : device::AskDevice()) {
    all = TellProbe(context, probe) && all;
  }
  return all;
}

std::string WhyNoNccl() { return device::WhyNoLink(); }

bool TellNccl(const StageContext& context) {
  const std::string library = device::LinkLibrary();
  const auto tell = [&](const std::string& name, const std::string& wrong) {
    return TellProbe(context,
                     {name, wrong.empty(), wrong.empty() ? library : wrong});
  };
  const bool carries =
      tell("one NCCL rank gets what it sends itself, bit for bit",
           WhatCameWrong(context.planted_nccl));
  return tell("an NCCL rank that aborts can join anew", WhatAbortLeaves()) &&
         carries;
}

}  // namespace softmoe::gpu
