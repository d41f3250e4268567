// SPDX-License-Identifier: Apache-2.0
//
// scratch.h - working memory of kernels that is kept from call to call, so that
// a warm training step allocates nothing.
#ifndef SOFTMOE_KERNELS_SCRATCH_H_
#define SOFTMOE_KERNELS_SCRATCH_H_

#include <cstdint>

namespace softmoe::kernels {

// A thread has one buffer for each: a kernel's tasks may use kTask while the
// thread that called the kernel (and runs tasks too) holds kCall for them all.
enum class ScratchSlot { kTask, kCall };

// Returns at least `floats` floats of the calling thread, 64-byte aligned, with
// unspecified contents; valid until this thread asks for the same slot again.
// Grows and never shrinks. Throws EnvironmentError when memory is exhausted.
float* ThreadScratch(ScratchSlot slot, int64_t floats);

// `floats` rounded up so that the next part of a buffer is 64-byte aligned.
constexpr int64_t AlignedFloats(int64_t floats) {
  return (floats + 15) / 16 * 16;
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_SCRATCH_H_
