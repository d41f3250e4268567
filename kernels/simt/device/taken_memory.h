// SPDX-License-Identifier: Apache-2.0
//
// taken_memory.h - memory of the chosen device that goes to other things than
// allocations, as much as a test says (DeviceLimits): code, loaded at its first
// use, and what NCCL keeps for a rank. Call these functions within a HostCall.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_TAKEN_MEMORY_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_TAKEN_MEMORY_H_

#include <cstdint>

namespace softmoe::simt {

// Loads a kernel, or an algorithm of a library, that is about to be used.
// Returns null, or why there is no memory for it.
const char* LoadCode(uint64_t code);

// Takes memory for a rank that joins; returns null, or why there is none.
// GiveBackOfRank returns the memory of a rank that leaves `device`.
const char* TakeForRank();
void GiveBackOfRank(int device);

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_TAKEN_MEMORY_H_
