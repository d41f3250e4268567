// SPDX-License-Identifier: Apache-2.0
//
// taken_memory.h - memory of the chosen device that goes to other things than
// allocations, if a test says how much (DeviceLimits): code that is loaded when
// it is first used, and what NCCL keeps for a rank. All are within a call.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_TAKEN_MEMORY_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_TAKEN_MEMORY_H_

#include <cstdint>

namespace softmoe::simt {

// A kernel, or an algorithm of a library, is about to be used. Null, or why
// there is no memory for it.
const char* LoadCode(uint64_t code);

// A rank joins; null, or why there is no memory for it. It leaves `device`.
const char* TakeForRank();
void GiveBackOfRank(int device);

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_TAKEN_MEMORY_H_
