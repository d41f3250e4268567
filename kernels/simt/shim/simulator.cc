// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/shim/simulator.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/simt/shim/block.h"
#include "kernels/simt/shim/sanitizer_hooks.h"

softmoe::simt::Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace softmoe::simt {

void* kernel_argument = nullptr;

namespace {

Schedule chosen_schedule = Schedule::kAscending;
uint64_t chosen_seed = 1;
int schedules_chosen = 0;
bool grid_is_running = false;

uint64_t Volume(Index3 size) { return uint64_t{size.x} * size.y * size.z; }

// The order of the blocks.
std::vector<uint64_t> Order(uint64_t blocks, Random& random) {
  std::vector<uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (chosen_schedule == Schedule::kDescending) {
    std::reverse(order.begin(), order.end());
  } else if (chosen_schedule == Schedule::kRandom) {
    for (size_t i = blocks - 1; i > 0; --i) {
      std::swap(order[i], order[random.Below(static_cast<int>(i) + 1)]);
    }
  }
  return order;
}

}  // namespace

void SetSchedule(Schedule schedule, uint64_t seed) {
  chosen_schedule = schedule;
  chosen_seed = seed;
  ++schedules_chosen;
}
Schedule ChosenSchedule() { return chosen_schedule; }
uint64_t ChosenSeed() { return chosen_seed; }
int SchedulesChosen() { return schedules_chosen; }

bool InKernel() { return grid_is_running; }
void FailKernel(const char* message) { TheBlock().FailThread(message); }

void SetSharedMemoryLimit(size_t bytes) { TheBlock().set_shared_limit(bytes); }

const char* RunGrid(const Grid& grid, void (*kernel)()) {
  Block& block = TheBlock();
  block.BeginGrid(grid, kernel, chosen_schedule, chosen_seed);
  const uint64_t num_blocks = Volume(grid.blocks);
  const uint64_t num_threads = Volume(grid.threads);
  if (num_blocks == 0 || num_threads == 0 || num_threads > kMaxThreads) {
    block.Fail(
        "a grid of %llu blocks of %llu threads: there must be blocks, "
        "of 1 to %d threads",
        static_cast<unsigned long long>(num_blocks),
        static_cast<unsigned long long>(num_threads), kMaxThreads);
    return block.message();
  }
  Fiber caller{Fiber::Caller()};
  // All tags are new, and live until the grid ends: reused memory would bring
  // along the order of its last use.
  const auto ended = std::make_unique<GridTag>();
  block.set_ended(ended.get());
  std::vector<std::unique_ptr<BlockTags>> tags;
  int64_t count = 0;
  grid_is_running = true;
  for (const uint64_t b : Order(num_blocks, block.random())) {
    const Index3 index = {
        static_cast<unsigned>(b % grid.blocks.x),
        static_cast<unsigned>(b / grid.blocks.x % grid.blocks.y),
        static_cast<unsigned>(b / grid.blocks.x / grid.blocks.y)};
    tags.push_back(std::make_unique_for_overwrite<BlockTags>());
    if (!block.Run(index, count++, *tags.back(), caller)) break;
  }
  grid_is_running = false;
  // Only here: after each block, it would order the next block after that one.
  block.AcquireAll();
  return block.message();
}

int LaneOfThisThread() { return TheBlock().current().lane(); }

void BlockBarrier(const char* file, int line) {
  TheBlock().Barrier(file, line);
}

void WarpRendezvous(WarpOperation operation, uint32_t mask,
                    const uint64_t* operand, int source, uint64_t* result,
                    const char* file, int line) {
  RequireInitialized(operand, sizeof(*operand));
  TheBlock().WarpRendezvous(operation, mask, *operand, source, result, file,
                            line);
  MarkInitialized(result);
}

void ShareRows(const void* row, const void* (&result)[32], const char* file,
               int line) {
  TheBlock().WarpMatrices(WarpOperation::kShareRows, row, result, file, line);
  MarkInitialized(&result);
}

void MultiplyMatrices(const MatrixOperands& operands, float (&result)[4],
                      const char* file, int line) {
  RequireInitialized(&operands, sizeof(operands));
  TheBlock().WarpMatrices(WarpOperation::kMultiplyMatrices, &operands, result,
                          file, line);
  MarkInitialized(&result);
}

void RequireShared(const void* at, const char* file, int line) {
  TheBlock().RequireShared(at, file, line);
}

void NoteCopy(const void* from, void* to, const char* file, int line) {
  TheBlock().NoteCopy(from, to, file, line);
}
void CommitCopies() { TheBlock().CommitCopies(); }
void TakeCopy(int left, const void** from, void** to) {
  TheBlock().TakeCopy(left, from, to);
  MarkInitialized(from);
  MarkInitialized(to);
}

void* SharedMemory(const void* identity, size_t size, const char* file,
                   int line) {
  return TheBlock().Shared(identity, size, file, line);
}

void* DynamicSharedMemory() { return TheBlock().dynamic_shared(); }

}  // namespace softmoe::simt
