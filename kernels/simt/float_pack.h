// SPDX-License-Identifier: Apache-2.0
//
// float_pack.h - consecutive columns of a row in one CUDA thread. Memory gives
// and takes them 16 bytes at a time, as a device has to be asked if its memory
// is to be as fast as it is; the arithmetic is that of floats, one by one.
//
// Code for any width takes RealOf<1>, a float, for one column.
#ifndef SOFTMOE_KERNELS_SIMT_FLOAT_PACK_H_
#define SOFTMOE_KERNELS_SIMT_FLOAT_PACK_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/simt/scalar.h"
#ifndef __CUDACC__
#include "kernels/simt/shim/simulator.h"
#endif

namespace softmoe::kernels::SOFTMOE_ISA {

template <int kSize>
struct FloatPack {
  float element[kSize];

  FloatPack() = default;
  SOFTMOE_INLINE explicit FloatPack(float x) {
    SOFTMOE_UNROLL
    for (int i = 0; i < kSize; ++i) element[i] = x;
  }
  SOFTMOE_INLINE float& operator[](int i) { return element[i]; }
  SOFTMOE_INLINE float operator[](int i) const { return element[i]; }
};

template <int kWidth>
using RealOf = std::conditional_t<kWidth == 1, float, FloatPack<kWidth>>;

// The pack of f(0), f(1), ...
template <int kSize, typename F>
SOFTMOE_INLINE FloatPack<kSize> PackOf(const F& f) {
  FloatPack<kSize> result;
  SOFTMOE_UNROLL
  for (int i = 0; i < kSize; ++i) result[i] = f(i);
  return result;
}

// ---- The operations of scalar.h

template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> operator+(const FloatPack<kSize>& a,
                                          const FloatPack<kSize>& b) {
  return PackOf<kSize>([&](int i) { return a[i] + b[i]; });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> operator-(const FloatPack<kSize>& a,
                                          const FloatPack<kSize>& b) {
  return PackOf<kSize>([&](int i) { return a[i] - b[i]; });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> operator*(const FloatPack<kSize>& a,
                                          const FloatPack<kSize>& b) {
  return PackOf<kSize>([&](int i) { return a[i] * b[i]; });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> operator/(const FloatPack<kSize>& a,
                                          const FloatPack<kSize>& b) {
  return PackOf<kSize>([&](int i) { return a[i] / b[i]; });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> operator-(const FloatPack<kSize>& a) {
  return PackOf<kSize>([&](int i) { return -a[i]; });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize>& operator+=(FloatPack<kSize>& a,
                                            const FloatPack<kSize>& b) {
  return a = a + b;
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> Fma(const FloatPack<kSize>& a,
                                    const FloatPack<kSize>& b,
                                    const FloatPack<kSize>& c) {
  return PackOf<kSize>([&](int i) { return Fma(a[i], b[i], c[i]); });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> Fms(const FloatPack<kSize>& a,
                                    const FloatPack<kSize>& b,
                                    const FloatPack<kSize>& c) {
  return PackOf<kSize>([&](int i) { return Fms(a[i], b[i], c[i]); });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> Sqrt(const FloatPack<kSize>& a) {
  return PackOf<kSize>([&](int i) { return Sqrt(a[i]); });
}
template <int kSize>
SOFTMOE_INLINE FloatPack<kSize> Max(const FloatPack<kSize>& a,
                                    const FloatPack<kSize>& b) {
  return PackOf<kSize>([&](int i) { return Max(a[i], b[i]); });
}

// ---- The columns of one Real, combined

// Added by halves, 8 -> 4 -> 2 -> 1.
SOFTMOE_INLINE float SumOf(float x) { return x; }
template <int kSize>
SOFTMOE_INLINE float SumOf(FloatPack<kSize> x) {
  SOFTMOE_UNROLL
  for (int half = kSize / 2; half > 0; half /= 2) {
    SOFTMOE_UNROLL
    for (int i = 0; i < half; ++i) x[i] += x[i + half];
  }
  return x[0];
}
SOFTMOE_INLINE float MaxOf(float x) { return x; }
template <int kSize>
SOFTMOE_INLINE float MaxOf(FloatPack<kSize> x) {
  SOFTMOE_UNROLL
  for (int half = kSize / 2; half > 0; half /= 2) {
    SOFTMOE_UNROLL
    for (int i = 0; i < half; ++i) x[i] = Max(x[i], x[i + half]);
  }
  return x[0];
}

// ---- Memory

// What one access moves; memory must begin at a multiple of its size.
struct alignas(16) WideWord {
  uint32_t part[4];
};

#ifdef __CUDACC__
SOFTMOE_INLINE WideWord LoadWide(const void* from) {
  const uint4 word = *static_cast<const uint4*>(from);
  return {{word.x, word.y, word.z, word.w}};
}
SOFTMOE_INLINE void StoreWide(const WideWord& word, void* to) {
  *static_cast<uint4*>(to) =
      make_uint4(word.part[0], word.part[1], word.part[2], word.part[3]);
}
#else
SOFTMOE_INLINE void RequireWide(const void* memory) {
  if (reinterpret_cast<uintptr_t>(memory) % sizeof(WideWord) == 0) return;
  simt::FailKernel("16 bytes are accessed at an address not a multiple of 16");
}
SOFTMOE_INLINE WideWord LoadWide(const void* from) {
  RequireWide(from);
  WideWord word;
  memcpy(&word, from, sizeof(word));
  return word;
}
SOFTMOE_INLINE void StoreWide(const WideWord& word, void* to) {
  RequireWide(to);
  memcpy(to, &word, sizeof(word));
}
#endif

// kWidth elements from `from` on. T is float or Bf16; what is stored as Bf16 is
// rounded once.
template <int kWidth, typename T>
SOFTMOE_INLINE RealOf<kWidth> LoadReal(const T* from) {
  if constexpr (kWidth == 1) {
    return FloatOf(*from);
  } else {
    // Elements in a word, and in a part of it.
    constexpr int kCount = sizeof(WideWord) / sizeof(T);
    constexpr int kOfPart = kCount / 4;
    static_assert(kWidth % kCount == 0);
    FloatPack<kWidth> result;
    SOFTMOE_UNROLL
    for (int w = 0; w < kWidth / kCount; ++w) {
      const WideWord word = LoadWide(from + w * kCount);
      SOFTMOE_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const uint32_t part = word.part[i / kOfPart];
        if constexpr (std::is_same_v<T, float>) {
          result[w * kCount + i] = FloatsOf(static_cast<int32_t>(part));
        } else {
          const uint32_t bits = part >> (i % kOfPart * 16);
          result[w * kCount + i] =
              FloatOf(Bf16{static_cast<uint16_t>(bits & 0xffff)});
        }
      }
    }
    return result;
  }
}

template <typename T>
SOFTMOE_INLINE void StoreReal(float value, T* to) {
  StoreFloat(value, to);
}
template <int kWidth, typename T>
SOFTMOE_INLINE void StoreReal(const FloatPack<kWidth>& value, T* to) {
  constexpr int kCount = sizeof(WideWord) / sizeof(T);
  constexpr int kOfPart = kCount / 4;
  static_assert(kWidth % kCount == 0);
  SOFTMOE_UNROLL
  for (int w = 0; w < kWidth / kCount; ++w) {
    WideWord word = {};
    SOFTMOE_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float x = value[w * kCount + i];
      if constexpr (std::is_same_v<T, float>) {
        word.part[i] = static_cast<uint32_t>(BitsOf(x));
      } else {
        word.part[i / kOfPart] |= uint32_t{RoundToBf16(x).bits}
                                  << (i % kOfPart * 16);
      }
    }
    StoreWide(word, to + w * kCount);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMT_FLOAT_PACK_H_
