// SPDX-License-Identifier: Apache-2.0
//
// guarded_heap.h - turns the guards of guarded_heap.cc on or off for later
// allocations: a guard takes three system calls.
#ifndef SOFTMOE_KERNELS_TESTING_GUARDED_HEAP_H_
#define SOFTMOE_KERNELS_TESTING_GUARDED_HEAP_H_

namespace softmoe {

// On when the program begins.
void GuardHeap(bool on);

}  // namespace softmoe

#endif  // SOFTMOE_KERNELS_TESTING_GUARDED_HEAP_H_
