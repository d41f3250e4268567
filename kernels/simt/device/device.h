// SPDX-License-Identifier: Apache-2.0
//
// device.h - the simulated device for those who test on it: its limits, its
// failures, what was called.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_DEVICE_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>

namespace softmoe::simt {

// Bytes per device. The defaults are an H100's 80 GB, without subtracting what
// a device needs for itself, and the shared memory of sm_80, the smallest of
// the devices that we compile for.
struct DeviceLimits {
  int devices = 1;  // at most 16
  size_t memory = size_t{80} * 1000 * 1000 * 1000;
  size_t shared_memory_per_block = size_t{163} * 1024;
  // What this process's context takes of a device's memory, from the first call
  // that needs one; a real one takes some 500 MB.
  size_t context = 0;
  // What each kernel, and each algorithm of products, takes from its first use
  // on, and what NCCL takes for a rank.
  size_t first_use = 0;
  size_t nccl = 0;
  int driver = 0;          // its version, 12040 for CUDA 12.4; 0: the runtime's
  size_t cublas = 130100;  // the version of cuBLASLt, here 13.1.0
};
// Contexts end.
void SetDeviceLimits(const DeviceLimits& limits);
const DeviceLimits& ChosenDeviceLimits();

// The n-th call of `call` from now on ("cudaMalloc", "cublasLtMatmul"; n >= 1)
// does nothing and returns `error`, a cudaError_t or cublasStatus_t. One at a
// time per name.
void FailCall(const char* call, int n, int error);

// Whether this process has a context on the device.
bool HasContext(int device);

// What code that was loaded takes of the device's memory.
size_t LoadedCode(int device);

// How often `call` was called in this process.
int CallsOf(const char* call);

// How many copies there were between the device and host memory that is not
// page-locked: on a device the host may wait for each.
int PageableCopies();

// Allocations of the device that live, and their bytes.
int LiveAllocations();
size_t LiveBytes();

// About how many seconds a thread waits for another one to queue something,
// before that one counts as a rank that never comes; 20 by default.
void SetPatience(int seconds);

int LiveNcclCommunicators();
// What NCCL has carried from rank `from` to rank `to`, of all communicators of
// this process.
int64_t NcclBytes(int from, int to);

// Forgets the errors that devices report for every later call (a kernel that
// failed). Queued work of all devices is gone; memory and streams are as they
// were. A real device needs a new process for that.
void ForgetFailure();

// If no allocation lives: forgets those that were freed, whose addresses may
// then be used again. For programs that run very many cases, since every call
// looks through all allocations, and there are addresses for millions only.
void ForgetFreedMemory();

// The order of sums in products depends on `seed`, 1 by default. Call it before
// the first product: within a process the seed never changes.
void SetSumSeed(uint64_t seed);

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_DEVICE_H_
