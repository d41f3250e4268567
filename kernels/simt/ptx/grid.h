// SPDX-License-Identifier: Apache-2.0
//
// grid.h - executes a kernel of PTX, block by block, thread by thread.
//
// A thread runs until it must wait: at the barrier of its block, or for lanes
// of its warp. It shares nothing with the simulator that runs the source
// (../shim), so that one cannot hide a mistake of the other.
//
// Errors, each with file, line and thread: an access that is not aligned, or
// not wholly within one allocation, one variable of shared memory, or one
// parameter; a byte of shared memory that another thread wrote, and no barrier
// since; what a copy reads, changed before it landed; a barrier that some
// thread skips, or waits for at another instruction; a warp's instruction whose
// mask lacks the caller, names a lane that never comes, or is not the same for
// all; a thread that exits with copies pending, or does not end. And a grid
// with larger blocks, or with more shared memory, than it may have.
//
// It is stricter than a device in four points: a thread that has ended may not
// be waited for, lanes and threads that wait for each other must be at the same
// instruction, a barrier of a warp is one of all its lanes, and no variable is
// aligned more than it says. Registers and shared memory begin as all ones
// (NaN).
//
// Not seen: two threads that write a byte, or one that writes what another has
// yet to read, unless the order of threads shows it.
#ifndef SOFTMOE_KERNELS_SIMT_PTX_GRID_H_
#define SOFTMOE_KERNELS_SIMT_PTX_GRID_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/simt/ptx/program.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::ptx {

struct Extent {
  uint64_t begin = 0;
  size_t size = 0;
};

struct Launch {
  simt::Index3 blocks, threads;
  size_t dynamic_shared = 0;
  size_t shared_limit = size_t{48} * 1024;  // of a block, static and dynamic
  std::vector<char> parameters;             // laid out as the kernel says
  // The allocation of global memory that holds an address; none: of no size.
  std::function<Extent(uint64_t address)> find;
  // Who goes first: threads of a block, and blocks.
  simt::Schedule schedule = simt::Schedule::kAscending;
  uint64_t seed = 1;
};

// Counts in `kernel` what was executed. Throws Fault.
void RunGrid(const Launch& launch, Kernel* kernel);

}  // namespace softmoe::ptx

#endif  // SOFTMOE_KERNELS_SIMT_PTX_GRID_H_
