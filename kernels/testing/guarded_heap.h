// SPDX-License-Identifier: Apache-2.0
//
// guarded_heap.h - whether the heap of guarded_heap.cc guards what is allocated
// from now on: a guard takes three calls of the system.
#ifndef SOFTMOE_KERNELS_TESTING_GUARDED_HEAP_H_
#define SOFTMOE_KERNELS_TESTING_GUARDED_HEAP_H_

namespace softmoe {

// On when the program begins.
void GuardHeap(bool on);

}  // namespace softmoe

#endif  // SOFTMOE_KERNELS_TESTING_GUARDED_HEAP_H_
