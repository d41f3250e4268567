// SPDX-License-Identifier: Apache-2.0
//
// warp_matrices.h - what tensor_core.h does on a device, for the simulator. The
// program under test accesses its memory here itself, so that sanitizers see
// it; what passes between lanes goes through the simulator.
//
// A copy lands as late as it may: when its thread waits for it. From its
// beginning until then its target has no value (all bits one: NaN; for MSan,
// uninitialised), and is written to twice, as TSan sees it.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_WARP_MATRICES_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_WARP_MATRICES_H_

#include <cstdint>
#include <cstring>

#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {

// Loads and stores of 16 bytes that compilers leave where they are.
inline void Move16(const void* from, void* to) {
  const volatile uint64_t* source = static_cast<const uint64_t*>(from);
  volatile uint64_t* target = static_cast<uint64_t*>(to);
  target[0] = source[0];
  target[1] = source[1];
}
inline void Write16(uint64_t value, void* to) {
  volatile uint64_t* target = static_cast<uint64_t*>(to);
  target[0] = value;
  target[1] = value;
}

// `row` [8] of two bytes each; of lane l row l % 8 of matrix l / 8.
inline void LoadMatrices(const void* row, bool transposed, uint32_t (&pairs)[4],
                         const char* file, int line) {
  RequireShared(row, file, line);
  const void* rows[32];
  ShareRows(row, rows, file, line);
  const int lane = LaneOfThisThread();
  const auto element = [&](int matrix, int r, int c) {
    const volatile uint16_t* at =
        static_cast<const uint16_t*>(rows[8 * matrix + r]);
    return uint32_t{at[c]};
  };
  for (int i = 0; i < 4; ++i) {
    const int g = lane / 4, t = lane % 4 * 2;
    pairs[i] = transposed ? element(i, t, g) | element(i, t + 1, g) << 16
                          : element(i, g, t) | element(i, g, t + 1) << 16;
  }
}

inline void MultiplyAdd(const uint32_t (&a)[4], const uint32_t (&b)[2],
                        float (&c)[4], const char* file, int line) {
  MatrixOperands operands;
  memcpy(operands.a, a, sizeof(a));
  memcpy(operands.b, b, sizeof(b));
  memcpy(operands.c, c, sizeof(c));
  MultiplyMatrices(operands, c, file, line);
}

inline void BeginCopy(const void* from, bool exists, void* to, const char* file,
                      int line) {
  RequireShared(to, file, line);
  NoteCopy(exists ? from : nullptr, to, file, line);
  Write16(~uint64_t{0}, to);
  MarkUninitialized(to, 16);
}

inline void WaitForCopies(int left) {
  for (;;) {
    const void* from;
    void* to;
    TakeCopy(left, &from, &to);
    if (to == nullptr) return;
    if (from != nullptr) {
      Move16(from, to);
    } else {
      Write16(0, to);
    }
  }
}

// 2^x, rounded to the nearest or the number next to it; as the device's
// ex2.approx.ftz.f32, 0 where that is subnormal. Not libm's, of which MSan
// knows nothing.
inline float Exp2(float x) {
  if (x != x) return x;
  if (x < -126.0f) return 0;
  if (x >= 128.0f) return __builtin_inff();
  const int whole = static_cast<int>(x < 0 ? x - 0.5f : x + 0.5f);
  const double y = (double{x} - whole) * 0.69314718055994531;
  double sum = 1;  // of y^n / n!, |y| < 0.35
  for (int n = 11; n > 0; --n) sum = 1 + sum * y / n;
  const uint64_t bits = static_cast<uint64_t>(whole + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof(power));
  return static_cast<float>(sum * power);
}

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_WARP_MATRICES_H_
