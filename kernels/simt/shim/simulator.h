// SPDX-License-Identifier: Apache-2.0
//
// simulator.h - runs a CUDA grid on the CPU, each CUDA thread on a fiber, and
// refuses what a device would hang on or leave undefined.
//
// Blocks run one after the other, the threads of a block in turns: a thread
// runs until it waits at a barrier, a shuffle or a vote, or ends. Kernels are
// written for cuda_runtime.h in this folder, which calls what is here.
//
// Errors, each with file, line and threads: a barrier that some threads of the
// block miss or reach at another line; a warp operation whose mask lacks the
// caller, names a lane that never comes, or is not the same for all; a shuffle
// from a lane outside the mask; too much shared memory. It is stricter than a
// device in one point: a thread that has ended may not be waited for.
//
// One operating system thread at a time may use it; the simulated device sees
// to that (../device/host_call.h).
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_SIMULATOR_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_SIMULATOR_H_

#include <cstddef>
#include <cstdint>

namespace softmoe::simt {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

// The order in which threads, and blocks, take their turns. A program that is
// correct gives the same results in all.
enum class Schedule { kAscending, kDescending, kRandom };

// For all later grids. `seed` is that of kRandom.
void SetSchedule(Schedule schedule, uint64_t seed = 1);
Schedule ChosenSchedule();
uint64_t ChosenSeed();
int SchedulesChosen();  // how often SetSchedule was called

struct Grid {
  Index3 blocks, threads;  // threads per block: at most 1024 in all
  size_t dynamic_shared = 0;
  size_t dynamic_shared_limit = 0;  // by cudaFuncSetAttribute; 0: not called
  // To TSan, grids of one set run on the same threads. Grids that nothing
  // orders need different sets, or races between them are hidden.
  int fiber_set = 0;
};

inline constexpr int kNumFiberSets = 6;  // TSan has 8128 threads at most

// The most shared memory of a block, static and dynamic, for all later grids:
// by default that of sm_80, the smallest of the devices that we compile for.
void SetSharedMemoryLimit(size_t bytes);

// Runs kernel() once for each thread of the grid; it takes no arguments so that
// MSan, which passes what it knows of arguments in registers of its own, is not
// misled. Returns null, or what is wrong, valid until the next grid.
const char* RunGrid(const Grid& grid, void (*kernel)());

// kernel() may read its arguments from here.
extern void* kernel_argument;

// Runs a kernel at once, on memory of the caller's, without the device around
// it (../device): for tests of the simulator itself. Returns as RunGrid does.
template <typename... Parameters, typename... Arguments>
const char* RunKernel(const Grid& grid, void (*kernel)(Parameters...),
                      Arguments... arguments) {
  // Each thread gets its own copy of the arguments, as on a device.
  auto call = [&] { kernel(Parameters(arguments)...); };
  kernel_argument = &call;
  return RunGrid(grid,
                 [] { (*static_cast<decltype(call)*>(kernel_argument))(); });
}

// InKernel: whether a thread of a grid is running. FailKernel ends its grid,
// which fails with `message`; a signal handler may call it, too.
bool InKernel();
[[noreturn]] void FailKernel(const char* message);

// The rest is for the running thread.

// threadIdx, blockIdx, blockDim, gridDim are in cuda_runtime.h.
int LaneOfThisThread();

void BlockBarrier(const char* file, int line);

enum class WarpOperation {
  kBarrier,
  kShuffle,
  kBallot,
  kShareRows,
  kMultiplyMatrices
};

// Waits until every lane of `mask` has come with the same operation, and gives
//   kShuffle   the operand of lane `source`, or the caller's if source < 0
//   kBallot    bit i: lane i is in the mask and its operand is not 0
// Only kBarrier orders memory, as on a device.
void WarpRendezvous(WarpOperation operation, uint32_t mask,
                    const uint64_t* operand, int source, uint64_t* result,
                    const char* file, int line);

// For warp_matrices.h, whole warps. ShareRows: result[l] is the row of lane l.
// MultiplyMatrices: the result [4] of A B + C, with sums that are cut off, not
// rounded. Fragments are those of mma.m16n8k16 in the PTX ISA.
struct MatrixOperands {
  uint32_t a[4], b[2];  // pairs of bf16
  float c[4];
};
void ShareRows(const void* row, const void* (&result)[32], const char* file,
               int line);
void MultiplyMatrices(const MatrixOperands& operands, float (&result)[4],
                      const char* file, int line);

// Refuses 16 bytes that are not in the block's shared memory, or do not begin
// on a multiple of 16.
void RequireShared(const void* at, const char* file, int line);

// Copies of 16 bytes that the thread has begun, from null if they are zeros.
// TakeCopy gives, and forgets, one that must land when all groups but the last
// `left` are waited for; null if there is none. A thread must not end while it
// has some.
void NoteCopy(const void* from, void* to, const char* file, int line);
void CommitCopies();
void TakeCopy(int left, const void** from, void** to);

// The shared variable that `identity` stands for; dynamic shared memory.
void* SharedMemory(const void* identity, size_t size, const char* file,
                   int line);
void* DynamicSharedMemory();

}  // namespace softmoe::simt

// As in CUDA, for the running thread.
extern softmoe::simt::Index3 threadIdx, blockIdx, blockDim, gridDim;

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_SIMULATOR_H_
