// SPDX-License-Identifier: Apache-2.0
//
// simd_v4.h - the vector of simd.h on AVX-512: 16 floats. Include simd.h.
#ifndef SOFTMOE_KERNELS_SIMD_SIMD_V4_H_
#define SOFTMOE_KERNELS_SIMD_SIMD_V4_H_

namespace softmoe::kernels::SOFTMOE_ISA {

// A condition for each lane.
struct Mask {
  __mmask16 m;
};
SOFTMOE_INLINE Mask operator&(Mask a, Mask b) {
  return {static_cast<__mmask16>(a.m & b.m)};
}
SOFTMOE_INLINE Mask operator|(Mask a, Mask b) {
  return {static_cast<__mmask16>(a.m | b.m)};
}
SOFTMOE_INLINE Mask operator!(Mask a) { return {static_cast<__mmask16>(~a.m)}; }
// Bit i is lane i.
SOFTMOE_INLINE uint32_t Bits(Mask a) { return a.m; }
SOFTMOE_INLINE bool Any(Mask a) { return a.m != 0; }

struct Floats {
  static constexpr int kWidth = 16;
  __m512 v;

  Floats() = default;
  // NOLINTBEGIN(google-explicit-constructor): every lane is such a scalar
  SOFTMOE_INLINE Floats(__m512 x) : v(x) {}
  SOFTMOE_INLINE Floats(float x) : v(_mm512_set1_ps(x)) {}
  // NOLINTEND(google-explicit-constructor)
  static SOFTMOE_INLINE Floats Load(const float* p) {
    return _mm512_loadu_ps(p);
  }
  // The first `count` lanes, 0 <= count <= kWidth, and zero in the others.
  // Memory past the first `count` is not touched.
  static SOFTMOE_INLINE Floats LoadPartial(const float* p, int count) {
    return _mm512_maskz_loadu_ps(First(count), p);
  }
  SOFTMOE_INLINE void Store(float* p) const { _mm512_storeu_ps(p, v); }
  SOFTMOE_INLINE void StorePartial(float* p, int count) const {
    _mm512_mask_storeu_ps(p, First(count), v);
  }
  static SOFTMOE_INLINE __mmask16 First(int count) {
    return static_cast<__mmask16>((1u << count) - 1);
  }
};

SOFTMOE_INLINE Floats operator+(Floats a, Floats b) {
  return _mm512_add_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats operator-(Floats a, Floats b) {
  return _mm512_sub_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats operator*(Floats a, Floats b) {
  return _mm512_mul_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats operator/(Floats a, Floats b) {
  return _mm512_div_ps(a.v, b.v);
}
// a*b + c, rounded once.
SOFTMOE_INLINE Floats Fma(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a.v, b.v, c.v);
}
SOFTMOE_INLINE Floats Min(Floats a, Floats b) {
  return _mm512_min_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats Max(Floats a, Floats b) {
  return _mm512_max_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats Sqrt(Floats a) { return _mm512_sqrt_ps(a.v); }
SOFTMOE_INLINE Floats Abs(Floats a) { return _mm512_abs_ps(a.v); }

// Ordered comparisons: false where an operand is NaN (!= is true there).
SOFTMOE_INLINE Mask operator<(Floats a, Floats b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
SOFTMOE_INLINE Mask operator<=(Floats a, Floats b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
SOFTMOE_INLINE Mask operator>(Floats a, Floats b) { return b < a; }
SOFTMOE_INLINE Mask operator>=(Floats a, Floats b) { return b <= a; }
SOFTMOE_INLINE Mask operator==(Floats a, Floats b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
SOFTMOE_INLINE Mask operator!=(Floats a, Floats b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)};
}
SOFTMOE_INLINE Floats Select(Mask m, Floats if_true, Floats if_false) {
  return _mm512_mask_blend_ps(m.m, if_false.v, if_true.v);
}

// 32-bit integers, for the bits of floats and for sets of up to 32 items.
struct Ints {
  __m512i v;
  Ints() = default;
  // NOLINTBEGIN(google-explicit-constructor): every lane is such a scalar
  SOFTMOE_INLINE Ints(__m512i x) : v(x) {}
  SOFTMOE_INLINE Ints(int32_t x) : v(_mm512_set1_epi32(x)) {}
  // NOLINTEND(google-explicit-constructor)
  SOFTMOE_INLINE void Store(int32_t* p) const { _mm512_storeu_si512(p, v); }
};
SOFTMOE_INLINE Ints operator+(Ints a, Ints b) {
  return _mm512_add_epi32(a.v, b.v);
}
SOFTMOE_INLINE Ints operator-(Ints a, Ints b) {
  return _mm512_sub_epi32(a.v, b.v);
}
SOFTMOE_INLINE Ints operator|(Ints a, Ints b) {
  return _mm512_or_si512(a.v, b.v);
}
SOFTMOE_INLINE Ints Select(Mask m, Ints if_true, Ints if_false) {
  return _mm512_mask_blend_epi32(m.m, if_false.v, if_true.v);
}
SOFTMOE_INLINE Mask operator==(Ints a, Ints b) {
  return {_mm512_cmpeq_epi32_mask(a.v, b.v)};
}
template <int kBits>
SOFTMOE_INLINE Ints ShiftLeft(Ints a) {
  return _mm512_slli_epi32(a.v, kBits);
}
template <int kBits>
SOFTMOE_INLINE Ints ShiftRightSigned(Ints a) {
  return _mm512_srai_epi32(a.v, kBits);
}
SOFTMOE_INLINE Ints BitsOf(Floats a) { return _mm512_castps_si512(a.v); }
SOFTMOE_INLINE Floats FloatsOf(Ints bits) {
  return _mm512_castsi512_ps(bits.v);
}
SOFTMOE_INLINE Floats Convert(Ints a) { return _mm512_cvtepi32_ps(a.v); }

// Halves added until one lane is left: 16 -> 8 -> 4 -> 2 -> 1.
SOFTMOE_INLINE float ReduceSum(Floats a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v),
                                     _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
SOFTMOE_INLINE float ReduceMax(Floats a) { return _mm512_reduce_max_ps(a.v); }

// Lane j of vector i becomes lane i of vector j.
SOFTMOE_INLINE void Transpose(Floats (&x)[16]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 4) {  // 4x4 blocks, in each quarter
    const __m512 a = _mm512_unpacklo_ps(x[i].v, x[i + 1].v);
    const __m512 b = _mm512_unpackhi_ps(x[i].v, x[i + 1].v);
    const __m512 c = _mm512_unpacklo_ps(x[i + 2].v, x[i + 3].v);
    const __m512 d = _mm512_unpackhi_ps(x[i + 2].v, x[i + 3].v);
    t[i] = _mm512_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; ++i) {  // then the quarters
    const __m512 a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    const __m512 c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    const __m512 d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    x[i] = _mm512_shuffle_f32x4(a, c, 0x88);
    x[i + 8] = _mm512_shuffle_f32x4(a, c, 0xdd);
    x[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
    x[i + 12] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMD_SIMD_V4_H_
