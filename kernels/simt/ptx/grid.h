// SPDX-License-Identifier: Apache-2.0
//
// grid.h - executes a kernel of PTX, block by block, thread by thread.
//
// A thread runs until it must wait: at the barrier of its block, or for lanes
// of its warp. The interpreter shares only types with the simulator that runs
// the source (../shim), so that neither can hide a mistake of the other.
//
// Errors, each with file, line and thread: an access that is not aligned, or
// not wholly within one allocation, one variable of shared memory, or one
// parameter; a read of a byte of shared memory that another thread wrote
// without a barrier since; a copy whose source changes before it lands; a
// barrier that some thread skips, or waits for at another instruction; a warp's
// instruction whose mask lacks the caller, names a lane that never comes, or is
// not the same for all; a thread that exits with copies pending, or does not
// end. Also a grid with larger blocks, or more shared memory, than it may have.
//
// It is stricter than a device in four points: no thread may wait for one that
// has ended; lanes and threads that wait for each other must be at the same
// instruction; a warp's barrier must include all its lanes; and no variable is
// aligned more than it says. Registers and shared memory begin as all ones
// (NaN).
//
// Not detected: two threads that write the same byte, or one that writes what
// another has yet to read, unless the order of threads shows it.
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
  // Returns the allocation of global memory at `address`; if none, of size 0.
  std::function<Extent(uint64_t address)> find;
  // Which threads of a block, and which blocks, go first.
  simt::Schedule schedule = simt::Schedule::kAscending;
  uint64_t seed = 1;
};

// Runs the grid. Counts in `kernel` what was executed. Throws Fault.
void RunGrid(const Launch& launch, Kernel* kernel);

}  // namespace softmoe::ptx

#endif  // SOFTMOE_KERNELS_SIMT_PTX_GRID_H_
