// SPDX-License-Identifier: Apache-2.0
#include "optimized/step_memory.h"

#include <algorithm>

#include "core/config/config_enums.h"
#include "core/errors.h"
#include "core/text/text_table.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
namespace {

constexpr Recompute kRecomputes[] = {Recompute::kNone, Recompute::kExperts,
                                     Recompute::kLayer};

// How errors and plans quote a setting, and what else they suggest.
std::string Quoted(Recompute recompute) {
  return std::string("\"") + EnumName(recompute) + "\"";
}
constexpr const char* kSmallerGroups =
    "take smaller groups (training.balance_group_sequences)";

// The plan of the first step; the caps do not depend on tau.
MemoryPlan PlanFirstStep(const Config& config, Recompute recompute,
                         int64_t product_workspaces, int ranks) {
  return PlanStep(config, InitialAllocations(config, /*tau=*/0),
                  config.training.balance_group_sequences, recompute,
                  product_workspaces, ranks);
}
std::optional<Recompute> LeastForFirstStep(const Config& config,
                                           int64_t product_workspaces,
                                           int64_t memory, int ranks) {
  return LeastRecompute(config, InitialAllocations(config, /*tau=*/0),
                        config.training.balance_group_sequences,
                        product_workspaces, memory, ranks);
}

//   reserve  what is kept for later, with its reason; or empty
[[noreturn]] void ThrowTooLittle(const MemoryPlan& plan, int64_t free_bytes,
                                 const std::string& reserve,
                                 const std::string& remedy) {
  throw EnvironmentError(
      "the device has " + FormatBytes(free_bytes) + " of memory left" +
      reserve + ", and the next allocation needs " + FormatBytes(plan.bytes()) +
      ":\n" + plan.Text() + remedy);
}

//   nccl  whether ranks have a device each, and so join over NCCL
int64_t Reserve(bool nccl) {
  return kReservedMemory + (nccl ? kReservedForNccl : 0);
}
std::string ReserveText(bool nccl) {
  return " after keeping " + FormatBytes(Reserve(nccl)) +
         " for what a run loads later (kernels, algorithms of "
         "products" +
         (nccl ? ", NCCL's buffers)" : ")");
}

}  // namespace

std::string StepMemoryText(const Config& config, Recompute recompute,
                           int ranks) {
  const auto plan = [&](Recompute of) {
    return PlanFirstStep(config, of, kProductWorkspaces, ranks);
  };
  constexpr int64_t kH100 = 80'000'000'000;
  std::string text =
      "memory of a step on the device" +
      (ranks > 1 ? " of each of " + std::to_string(ranks) + " ranks"
                 : std::string()) +
      ", runtime.recompute = " + Quoted(recompute) + ":\n" +
      plan(recompute).Text() + "runtime.recompute: ";
  for (const Recompute each : kRecomputes) {
    text += (each == kRecomputes[0] ? "" : ", ") + Quoted(each) + " takes " +
            FormatBytes(plan(each).bytes());
  }
  const auto least = LeastForFirstStep(config, kProductWorkspaces,
                                       PlannableMemory(kH100, ranks), ranks);
  return text + "; an H100 with 80 GB " +
         (least ? "holds the step with " + Quoted(*least)
                : std::string("cannot hold any of these: ") + kSmallerGroups) +
         "\n";
}

void RequireMemory(const MemoryPlan& plan, int64_t free_bytes) {
  if (plan.bytes() <= free_bytes) return;
  ThrowTooLittle(
      plan, free_bytes, /*reserve=*/"",
      std::string("set runtime.recompute to \"experts\" or \"layer\", which "
                  "trades time for memory and changes no result, or ") +
          kSmallerGroups);
}

int64_t PlannableMemory(int64_t free_bytes, int ranks) {
  return free_bytes - Reserve(/*nccl=*/ranks > 1);
}

void RequireStepMemory(const Config& config, Recompute recompute,
                       int64_t free_bytes, int ranks, int on_device,
                       int new_queues) {
  constexpr int64_t kInTheQueue = 0;
  const int64_t share =
      (PlannableMemory(free_bytes, on_device == 1 ? ranks : 1) -
       new_queues * kProductWorkspaces) /
      on_device;
  const MemoryPlan plan = PlanFirstStep(config, recompute, kInTheQueue, ranks);
  if (plan.bytes() <= share) return;
  const auto least = LeastForFirstStep(config, kInTheQueue, share, ranks);
  ThrowTooLittle(
      plan, std::max<int64_t>(0, share),
      ReserveText(/*nccl=*/on_device == 1 && ranks > 1),
      (on_device > 1 ? std::to_string(on_device) +
                           " ranks share the device, and this is what each of "
                           "them has: start fewer, or use more devices; or "
                     : std::string()) +
          (least ? "set runtime.recompute to " + Quoted(*least) +
                       ", which needs " +
                       FormatBytes(
                           PlanFirstStep(config, *least, kInTheQueue, ranks)
                               .bytes()) +
                       ", trades time for memory and changes no result"
                 : std::string("no runtime.recompute makes it fit: ") +
                       kSmallerGroups));
}

std::optional<Recompute> LeastRecompute(
    const Config& config, std::span<const LayerAllocation> allocations,
    int64_t group_sequences, int64_t product_workspaces, int64_t memory,
    int ranks) {
  for (const Recompute recompute : kRecomputes) {
    if (PlanStep(config, allocations, group_sequences, recompute,
                 product_workspaces, ranks)
            .bytes() <= memory) {
      return recompute;
    }
  }
  return std::nullopt;
}

}  // namespace softmoe::optimized
