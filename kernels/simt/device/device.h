// SPDX-License-Identifier: Apache-2.0
//
// device.h - the simulated device as tests control it: its limits, its
// failures, and which calls were made.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_DEVICE_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>

namespace softmoe::simt {

// Bytes per device. The defaults are an H100's 80 GB, with nothing subtracted
// for the device's own needs, and the shared memory of sm_80, the smallest of
// the devices that we compile for.
struct DeviceLimits {
  int devices = 1;  // at most 16
  size_t memory = size_t{80} * 1000 * 1000 * 1000;
  size_t shared_memory_per_block = size_t{163} * 1024;
  // Memory that this process's context takes on a device, from the first call
  // that needs a context; on a real device, some 500 MB.
  size_t context = 0;
  // Memory that each kernel, and each product algorithm, takes from its first
  // use on, and memory that NCCL takes per rank.
  size_t first_use = 0;
  size_t nccl = 0;
  int driver = 0;          // its version, 12040 for CUDA 12.4; 0: the runtime's
  size_t cublas = 130100;  // the version of cuBLASLt, here 13.1.0
};
// Sets the limits, and ends all contexts.
void SetDeviceLimits(const DeviceLimits& limits);
const DeviceLimits& ChosenDeviceLimits();

// Makes the n-th call (n >= 1) of `call` from now on ("cudaMalloc",
// "cublasLtMatmul") do nothing and return `error`, a number of the call's
// library; but ncclCommGetAsyncError reports it, and cublasLtGetVersion returns
// 0. Only one at a time per name.
void FailCall(const char* call, int n, int error);

// Whether this process has a context on the device.
bool HasContext(int device);

// Returns how much of the device's memory loaded code takes, in bytes.
size_t LoadedCode(int device);

// Returns how often `call` was called in this process.
int CallsOf(const char* call);

// Returns the number of copies between the device and host memory that is not
// page-locked: on a real device the host may wait for each.
int PageableCopies();

// Live device allocations: their number and their bytes.
int LiveAllocations();
size_t LiveBytes();

// Sets about how many seconds a thread waits for another one to queue something
// before that one counts as a rank that never comes; 20 by default.
void SetPatience(int seconds);

int LiveNcclCommunicators();
// Returns the bytes that NCCL has carried from rank `from` to rank `to`, over
// all communicators of this process.
int64_t NcclBytes(int from, int to);

// Forgets sticky errors, which a device returns for every later call (after a
// kernel that failed). All queued work of all devices is dropped; memory and
// streams stay as they were. A real device needs a new process for that.
void ForgetFailure();

// If no allocation is live, forgets the freed ones, whose addresses may then be
// used again. For programs that run very many cases: every call searches all
// allocations, and there are addresses for only some millions.
void ForgetFreedMemory();

// Sets the seed of the order of sums in products, 1 by default. Must be called
// before the first product: within a process the seed never changes.
void SetSumSeed(uint64_t seed);

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_DEVICE_H_
