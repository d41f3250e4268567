// SPDX-License-Identifier: Apache-2.0
//
// simd_v3.h - the vector of simd.h on AVX2 and FMA: 8 floats. Include simd.h.
#ifndef SOFTMOE_KERNELS_SIMD_SIMD_V3_H_
#define SOFTMOE_KERNELS_SIMD_SIMD_V3_H_

namespace softmoe::kernels::SOFTMOE_ISA {

// A condition for each lane: all bits of the lane, or none.
struct Mask {
  __m256 m;
};
SOFTMOE_INLINE Mask operator&(Mask a, Mask b) {
  return {_mm256_and_ps(a.m, b.m)};
}
SOFTMOE_INLINE Mask operator|(Mask a, Mask b) {
  return {_mm256_or_ps(a.m, b.m)};
}
SOFTMOE_INLINE Mask operator!(Mask a) {
  return {_mm256_xor_ps(a.m, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))};
}
// Bit i is lane i.
SOFTMOE_INLINE uint32_t Bits(Mask a) {
  return static_cast<uint32_t>(_mm256_movemask_ps(a.m));
}
SOFTMOE_INLINE bool Any(Mask a) { return Bits(a) != 0; }

struct Floats {
  static constexpr int kWidth = 8;
  __m256 v;

  Floats() = default;
  // NOLINTBEGIN(google-explicit-constructor): every lane is such a scalar
  SOFTMOE_INLINE Floats(__m256 x) : v(x) {}
  SOFTMOE_INLINE Floats(float x) : v(_mm256_set1_ps(x)) {}
  // NOLINTEND(google-explicit-constructor)
  static SOFTMOE_INLINE Floats Load(const float* p) {
    return _mm256_loadu_ps(p);
  }
  // The first `count` lanes, 0 <= count <= kWidth, and zero in the others.
  // Memory past the first `count` is not touched.
  static SOFTMOE_INLINE Floats LoadPartial(const float* p, int count) {
    return _mm256_maskload_ps(p, First(count));
  }
  SOFTMOE_INLINE void Store(float* p) const { _mm256_storeu_ps(p, v); }
  SOFTMOE_INLINE void StorePartial(float* p, int count) const {
    _mm256_maskstore_ps(p, First(count), v);
  }
  static SOFTMOE_INLINE __m256i First(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

SOFTMOE_INLINE Floats operator+(Floats a, Floats b) {
  return _mm256_add_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats operator-(Floats a, Floats b) {
  return _mm256_sub_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats operator*(Floats a, Floats b) {
  return _mm256_mul_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats operator/(Floats a, Floats b) {
  return _mm256_div_ps(a.v, b.v);
}
// a*b + c, rounded once.
SOFTMOE_INLINE Floats Fma(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a.v, b.v, c.v);
}
SOFTMOE_INLINE Floats Min(Floats a, Floats b) {
  return _mm256_min_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats Max(Floats a, Floats b) {
  return _mm256_max_ps(a.v, b.v);
}
SOFTMOE_INLINE Floats Sqrt(Floats a) { return _mm256_sqrt_ps(a.v); }
SOFTMOE_INLINE Floats Abs(Floats a) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v);
}

// Ordered comparisons: false where an operand is NaN (!= is true there).
SOFTMOE_INLINE Mask operator<(Floats a, Floats b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)};
}
SOFTMOE_INLINE Mask operator<=(Floats a, Floats b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)};
}
SOFTMOE_INLINE Mask operator>(Floats a, Floats b) { return b < a; }
SOFTMOE_INLINE Mask operator>=(Floats a, Floats b) { return b <= a; }
SOFTMOE_INLINE Mask operator==(Floats a, Floats b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)};
}
SOFTMOE_INLINE Mask operator!=(Floats a, Floats b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)};
}
SOFTMOE_INLINE Floats Select(Mask m, Floats if_true, Floats if_false) {
  return _mm256_blendv_ps(if_false.v, if_true.v, m.m);
}

// 32-bit integers, for the bits of floats and for sets of up to 32 items.
struct Ints {
  __m256i v;
  Ints() = default;
  // NOLINTBEGIN(google-explicit-constructor): every lane is such a scalar
  SOFTMOE_INLINE Ints(__m256i x) : v(x) {}
  SOFTMOE_INLINE Ints(int32_t x) : v(_mm256_set1_epi32(x)) {}
  // NOLINTEND(google-explicit-constructor)
  SOFTMOE_INLINE void Store(int32_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  }
};
SOFTMOE_INLINE Ints operator+(Ints a, Ints b) {
  return _mm256_add_epi32(a.v, b.v);
}
SOFTMOE_INLINE Ints operator-(Ints a, Ints b) {
  return _mm256_sub_epi32(a.v, b.v);
}
SOFTMOE_INLINE Ints operator|(Ints a, Ints b) {
  return _mm256_or_si256(a.v, b.v);
}
SOFTMOE_INLINE Ints Select(Mask m, Ints if_true, Ints if_false) {
  return _mm256_blendv_epi8(if_false.v, if_true.v, _mm256_castps_si256(m.m));
}
SOFTMOE_INLINE Mask operator==(Ints a, Ints b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))};
}
template <int kBits>
SOFTMOE_INLINE Ints ShiftLeft(Ints a) {
  return _mm256_slli_epi32(a.v, kBits);
}
template <int kBits>
SOFTMOE_INLINE Ints ShiftRightSigned(Ints a) {
  return _mm256_srai_epi32(a.v, kBits);
}
SOFTMOE_INLINE Ints BitsOf(Floats a) { return _mm256_castps_si256(a.v); }
SOFTMOE_INLINE Floats FloatsOf(Ints bits) {
  return _mm256_castsi256_ps(bits.v);
}
SOFTMOE_INLINE Floats Convert(Ints a) { return _mm256_cvtepi32_ps(a.v); }

// Halves added until one lane is left: 8 -> 4 -> 2 -> 1.
SOFTMOE_INLINE float ReduceSum(Floats a) {
  const __m128 four =
      _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
SOFTMOE_INLINE float ReduceMax(Floats a) {
  const __m128 four =
      _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Lane j of vector i becomes lane i of vector j.
SOFTMOE_INLINE void Transpose(Floats (&x)[8]) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 4) {  // 4x4 blocks, in each half
    const __m256 a = _mm256_unpacklo_ps(x[i].v, x[i + 1].v);
    const __m256 b = _mm256_unpackhi_ps(x[i].v, x[i + 1].v);
    const __m256 c = _mm256_unpacklo_ps(x[i + 2].v, x[i + 3].v);
    const __m256 d = _mm256_unpackhi_ps(x[i + 2].v, x[i + 3].v);
    t[i] = _mm256_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; ++i) {  // then the halves
    x[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
    x[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SIMD_SIMD_V3_H_
