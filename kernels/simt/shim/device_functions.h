// SPDX-License-Identifier: Apache-2.0
//
// device_functions.h - CUDA's barriers, shuffles, votes, atomics and
// intrinsics, for the simulator. Errors name the calling line of the kernel.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_DEVICE_FUNCTIONS_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_DEVICE_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/simt/shim/simulator.h"

#define SOFTMOE_SIMT_PLACE \
  const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace softmoe::simt {

// Any value of up to 8 bytes, as the simulator carries it.
template <typename T>
uint64_t Exchange(WarpOperation operation, uint32_t mask, T value, int source,
                  const char* file, int line) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t operand = 0, result = 0;
  memcpy(&operand, &value, sizeof(value));
  WarpRendezvous(operation, mask, &operand, source, &result, file, line);
  return result;
}

template <typename T>
T Shuffle(uint32_t mask, T value, int source, const char* file, int line) {
  const uint64_t bits =
      Exchange(WarpOperation::kShuffle, mask, value, source, file, line);
  memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace softmoe::simt

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names

// ---- Barriers

inline void __syncthreads(SOFTMOE_SIMT_PLACE) {
  softmoe::simt::BlockBarrier(file, line);
}
inline void __syncwarp(uint32_t mask = 0xffffffffu, SOFTMOE_SIMT_PLACE) {
  softmoe::simt::Exchange(softmoe::simt::WarpOperation::kBarrier, mask, 0, -1,
                          file, line);
}

// ---- Shuffles, within segments of `width` lanes (a power of two)

template <typename T>
T __shfl_sync(uint32_t mask, T value, int source, int width = 32,
              SOFTMOE_SIMT_PLACE) {
  const int lane = softmoe::simt::LaneOfThisThread();
  return softmoe::simt::Shuffle(
      mask, value, (lane & ~(width - 1)) | (source & (width - 1)), file, line);
}
template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int lane_mask, int width = 32,
                  SOFTMOE_SIMT_PLACE) {
  const int lane = softmoe::simt::LaneOfThisThread();
  const int source = lane ^ lane_mask;
  const int end = (lane & ~(width - 1)) + width;
  return softmoe::simt::Shuffle(mask, value, source < end ? source : -1, file,
                                line);
}
template <typename T>
T __shfl_up_sync(uint32_t mask, T value, unsigned delta, int width = 32,
                 SOFTMOE_SIMT_PLACE) {
  const int lane = softmoe::simt::LaneOfThisThread();
  const int step = static_cast<int>(delta);
  return softmoe::simt::Shuffle(
      mask, value, (lane & (width - 1)) >= step ? lane - step : -1, file, line);
}
template <typename T>
T __shfl_down_sync(uint32_t mask, T value, unsigned delta, int width = 32,
                   SOFTMOE_SIMT_PLACE) {
  const int lane = softmoe::simt::LaneOfThisThread();
  const int step = static_cast<int>(delta);
  return softmoe::simt::Shuffle(
      mask, value, (lane & (width - 1)) + step < width ? lane + step : -1, file,
      line);
}

// ---- Votes

inline unsigned __ballot_sync(uint32_t mask, int predicate,
                              SOFTMOE_SIMT_PLACE) {
  return static_cast<unsigned>(softmoe::simt::Exchange(
      softmoe::simt::WarpOperation::kBallot, mask, predicate, -1, file, line));
}
inline int __any_sync(uint32_t mask, int predicate, SOFTMOE_SIMT_PLACE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(uint32_t mask, int predicate, SOFTMOE_SIMT_PLACE) {
  return __ballot_sync(mask, predicate, file, line) == mask;
}

// ---- Atomics: relaxed, as on a device; the old value is returned

inline int atomicAdd(int* at, int value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
inline float atomicAdd(float* at, float value) {
  float seen;
  __atomic_load(at, &seen, __ATOMIC_RELAXED);
  for (;;) {
    float sum = seen + value;
    if (__atomic_compare_exchange(at, &seen, &sum, false, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED)) {
      return seen;
    }
  }
}

// ---- Functions of the device's libm, with the host's roundings

inline void sincospi(double x, double* sine, double* cosine) {
  *sine = sin(M_PI * x);
  *cosine = cos(M_PI * x);
}

// ---- Intrinsics

inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline float __int_as_float(int bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}
inline int __float_as_int(float x) {
  int bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

// NOLINTEND(bugprone-reserved-identifier)

#undef SOFTMOE_SIMT_PLACE

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_DEVICE_FUNCTIONS_H_
