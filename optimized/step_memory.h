// SPDX-License-Identifier: Apache-2.0
//
// step_memory.h - whether a device has the memory that a plan asks for
// (memory_plan.h), and what the user is told: before the first step, what it
// takes; if that is too much, what would fit.
#ifndef SOFTMOE_OPTIMIZED_STEP_MEMORY_H_
#define SOFTMOE_OPTIMIZED_STEP_MEMORY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/config/config.h"
#include "optimized/allocation.h"

namespace softmoe::optimized {

class MemoryPlan;

// What a program shows before the first step on a device: the plan of that step
// by part, what it takes with each setting of runtime.recompute, and which of
// them an H100 with 80 GB holds.
std::string StepMemoryText(const Config& config, Recompute recompute,
                           int ranks = 1);

// Throws EnvironmentError, with the plan and what takes less, if the plan needs
// more than `free_bytes`.
void RequireMemory(const MemoryPlan& plan, int64_t free_bytes);

// Bytes of a device's free memory that no plan takes, since more is needed once
// a run has begun. Kernels and the algorithms of products are loaded when they
// are first used; NCCL takes buffers when ranks on several devices join. Both
// sizes are assumed.
inline constexpr int64_t kReservedMemory = 2'000'000'000;
inline constexpr int64_t kReservedForNccl = 1'000'000'000;

// Bytes that plans may take of a device's `free_bytes`.
//
//   ranks  how many ranks have a device each, and train together
int64_t PlannableMemory(int64_t free_bytes, int ranks);

// Throws as RequireMemory does if the first step needs more than
// PlannableMemory, on a device that already has its queue; names the setting
// that recomputes least and fits, if one does.
//
//   ranks       how many train together
//   on_device   how many of them share this device, each needing its part
//   new_queues  that ranks on this device must still make: all but one if they
//               are threads, none if they are processes, which had their own
//               before the free memory was measured
void RequireStepMemory(const Config& config, Recompute recompute,
                       int64_t free_bytes, int ranks = 1, int on_device = 1,
                       int new_queues = 0);

// The setting that recomputes least among those with which a device of `memory`
// bytes holds PlanStep; nullopt if there is none.
std::optional<Recompute> LeastRecompute(
    const Config& config, std::span<const LayerAllocation> allocations,
    int64_t group_sequences, int64_t product_workspaces, int64_t memory,
    int ranks = 1);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_STEP_MEMORY_H_
