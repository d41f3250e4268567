// SPDX-License-Identifier: Apache-2.0
//
// block.h - the threads of the one block that is running: who goes next, who
// waits for whom, and what is wrong when nobody can go on.
//
// A waiting thread lets another one run; the last to arrive wakes the others.
// When all threads have ended, or the program is found wrong, the simulator
// continues on its own stack, after its call of Run.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_BLOCK_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_BLOCK_H_

#include <array>
#include <cstdint>

#include "kernels/simt/shim/fiber.h"
#include "kernels/simt/shim/shared_arena.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {

inline constexpr int kMaxThreads = 1024;
inline constexpr int kWarpSize = 32;
inline constexpr int kMaxWarps = kMaxThreads / kWarpSize;

// Why a thread that is not ready cannot go on.
enum class State : uint8_t { kAtBlockBarrier, kAtWarpOperation, kEnded };

// A copy to shared memory that has begun (tensor_core.h).
struct Copy {
  const void* from = nullptr;  // null: zeros
  void* to = nullptr;
  int group = 0;
  const char* file = nullptr;
  int line = 0;
};

// The copies of a thread that have not landed, in a ring. Kept apart from
// Thread: most kernels begin none, and what every switch reads stays together.
inline constexpr int kMaxCopies = 128;
using Copies = std::array<Copy, kMaxCopies>;

// One CUDA thread of the running block.
struct Thread {
  Fiber* fiber = nullptr;
  Index3 index;
  int number = 0;
  // Where the thread waits, if it does, and for what.
  State state = State::kEnded;
  const char* file = nullptr;
  int line = 0;
  uint64_t operand = 0, result = 0;
  int source = 0;
  // Operands of a pending matrix operation, in the thread's own memory.
  const void* given = nullptr;
  void* taken = nullptr;
  // Copies that have not landed, and the number of committed groups.
  int first_copy = 0, num_copies = 0, num_groups = 0;

  int warp() const { return number / kWarpSize; }
  int lane() const { return number % kWarpSize; }
};

// Lanes of a warp that wait for each other.
struct Rendezvous {
  WarpOperation operation;
  uint32_t mask = 0;
  uint32_t arrived = 0;
  unsigned barriers = 0;  // completed
};

// The tags that order the memory accesses of a block, for TSan. There are two
// per barrier, used in turn: with one, a fast thread's release at the next
// barrier would reach a slow thread's acquire at this one, and hide a race.
// Each block has its own tags, so that blocks are not ordered among each other.
struct BlockTags {
  char begin;
  char barrier[2];
  char warp_barrier[kMaxWarps][kWarpSize][2];
};

// The tag that orders the end of a grid's threads before what follows the grid.
struct GridTag {
  char ended;
};

// A small generator of our own: the same schedules everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(2 * seed + 1) {}
  int Below(int limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_;
};

class Block {
 public:
  // Call before the first Run of a grid.
  void BeginGrid(const Grid& grid, void (*kernel)(), Schedule schedule,
                 uint64_t seed);

  // Runs block `index`, the order-th of its grid, to its end. Returns false if
  // the program is wrong: message() says why.
  bool Run(Index3 index, int64_t order, BlockTags& tags, Fiber& caller);

  // Sets the tag of this grid, which must live as long as the grid.
  void set_ended(GridTag* tag) { ended_ = tag; }

  // Orders what the threads of this grid did before what the caller does now.
  void AcquireAll();

  void Fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // Fails with the running thread at fault; goes back to the caller of Run.
  [[noreturn]] void FailThread(const char* what);
  const char* message() const { return failed_ ? message_ : nullptr; }

  Random& random() { return random_; }
  void set_shared_limit(size_t bytes) { shared_limit_ = bytes; }
  // The most that a block of the grid may have, static and dynamic.
  size_t SharedLimit(const Grid& grid) const;

  // Called by the running thread; see simulator.h.
  const Thread& current() const { return *current_; }
  void Barrier(const char* file, int line);
  void WarpRendezvous(WarpOperation operation, uint32_t mask, uint64_t operand,
                      int source, uint64_t* result, const char* file, int line);
  void WarpMatrices(WarpOperation operation, const void* given, void* taken,
                    const char* file, int line);
  void RequireShared(const void* at, const char* file, int line);
  void NoteCopy(const void* from, void* to, const char* file, int line);
  void CommitCopies() { ++current_->num_groups; }
  void TakeCopy(int left, const void** from, void** to);
  void* Shared(const void* identity, size_t size, const char* file, int line);
  void* dynamic_shared() const { return dynamic_shared_; }

 private:
  static void RunThread();

  int FirstFiber(int64_t order) const;
  Fiber& FiberAt(int i);
  int FirstThread();
  void SetAllReady();
  void SetNotReady(const Thread& thread);
  Thread* NextReady();
  void Continue(Thread& thread, Fiber::Leaving leaving);
  void Wait(State state, const char* file, int line);
  void End();
  void Complete(const Rendezvous& rendezvous, int warp);
  [[noreturn]] void Abandon();
  void ReportStuck();
  bool SharedFits(const void* memory, const char* file, int line);

  // The grid.
  Grid grid_;
  void (*kernel_)() = nullptr;
  Schedule schedule_ = Schedule::kAscending;
  Random random_{1};
  int num_threads_ = 0;
  // Made when first needed, and never moved: the memory of a vector that grows
  // would be freed by another thread, as TSan sees it.
  std::array<std::array<Fiber*, kMaxThreads>, kNumFiberSets> fibers_ = {};
  GridTag* ended_ = nullptr;
  size_t shared_limit_ = SharedArena::kLargest;
  bool failed_ = false;
  char message_[1024] = {};  // not a std::string, of which MSan knows nothing

  // The running block.
  Fiber* caller_ = nullptr;
  BlockTags* tags_ = nullptr;
  SharedArena arena_;
  void* dynamic_shared_ = nullptr;
  std::array<Thread, kMaxThreads> threads_;
  std::array<Copies, kMaxThreads> copies_;
  std::array<uint32_t, kMaxWarps> ready_;  // bit i: lane i can go on
  int num_alive_ = 0;
  Thread* current_ = nullptr;
  int arrived_ = 0;  // at the block barrier
  const char* barrier_file_ = nullptr;
  int barrier_line_ = 0;
  unsigned barriers_ = 0;  // completed
  // A rendezvous is kept at the lowest lane of its mask: masks that are in use
  // at the same time are disjoint, or the program is wrong and gets stuck.
  std::array<std::array<Rendezvous, kWarpSize>, kMaxWarps> rendezvous_;
};

// The only block. Never destroyed: the order of destruction would matter.
Block& TheBlock();

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_BLOCK_H_
