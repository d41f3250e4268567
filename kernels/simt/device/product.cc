// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/product.h"

#include <cmath>

#include "kernels/simt/shim/block.h"
#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

// Not a standard container: the linker might take the tests' instrumented copy
// of its code.
template <typename T>
struct Array {
  explicit Array(int64_t size) : data(new T[static_cast<size_t>(size)]()) {}
  ~Array() { delete[] data; }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T& operator[](int64_t i) { return data[i]; }
  T* data;
};

float FromBits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

float Load(const MatrixShape& shape, const char* data, int64_t i) {
  if (!shape.bf16) {
    float x;
    __builtin_memcpy(&x, data + 4 * i, sizeof(x));
    return x;
  }
  uint16_t half;
  __builtin_memcpy(&half, data + 2 * i, sizeof(half));
  return FromBits(static_cast<uint32_t>(half) << 16);
}

// Rounds to nearest, ties to even; a NaN stays one.
uint16_t ToBf16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(x));
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return static_cast<uint16_t>((std::isnan(x) ? bits | 0x400000 : rounded) >>
                               16);
}

void Store(const MatrixShape& shape, float x, char* data, int64_t i) {
  if (!shape.bf16) {
    __builtin_memcpy(data + 4 * i, &x, sizeof(x));
    return;
  }
  const uint16_t half = ToBf16(x);
  __builtin_memcpy(data + 2 * i, &half, sizeof(half));
}

// The k products of a sum, in order, cut into parts.
struct SumOrder {
  Array<int64_t> index;  // [k]
  int64_t part;          // products in each; the last may have fewer
  bool fused;

  SumOrder(int64_t k, uint64_t order) : index(k) {
    Random random(order);
    part = int64_t{4} << random.Below(4);
    fused = random.Below(2) == 1;
    const bool down = random.Below(2) == 1;
    const int64_t parts = (k + part - 1) / part;
    Array<int64_t> shuffled(parts);
    for (int64_t i = 0; i < parts; ++i) shuffled[i] = i;
    for (int64_t i = parts - 1; i > 0; --i) {
      const int64_t j = random.Below(static_cast<int>(i) + 1);
      const int64_t swapped = shuffled[i];
      shuffled[i] = shuffled[j];
      shuffled[j] = swapped;
    }
    int64_t at = 0;
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t begin = shuffled[i] * part;
      const int64_t end = begin + part < k ? begin + part : k;
      for (int64_t j = begin; j < end; ++j) {
        index[at++] = down ? end - 1 - (j - begin) : j;
      }
    }
  }
};

// sums[n] = row a[k] times b[k, n], in parts (part[n] is scratch), rounded
// after each part, or not.
template <bool kFused>
void SumRow(const SumOrder& order, int64_t k, int64_t n, const float* a,
            const float* b, bool round, float* part, float* sums) {
  for (int64_t j = 0; j < n; ++j) sums[j] = 0;
  for (int64_t begin = 0; begin < k; begin += order.part) {
    const int64_t end = begin + order.part < k ? begin + order.part : k;
    for (int64_t j = 0; j < n; ++j) part[j] = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = order.index.data[i];
      const float x = a[at];
      const float* row = b + at * n;
      for (int64_t j = 0; j < n; ++j) {
        part[j] = kFused ? std::fma(x, row[j], part[j]) : part[j] + x * row[j];
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      sums[j] += part[j];
      if (round)
        sums[j] = FromBits(static_cast<uint32_t>(ToBf16(sums[j])) << 16);
    }
  }
}

// op(matrix) [rows, cols], as fp32 in rows.
void Pack(const MatrixShape& shape, const char* data, bool transposed,
          int64_t rows, int64_t cols, float* out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t at = transposed ? shape.At(j, i) : shape.At(i, j);
      out[i * cols + j] = Load(shape, data, at);
    }
  }
}

bool HasValue(const MatrixShape& shape, const char* data, int64_t at) {
  return IsInitialized(data + static_cast<size_t>(at) * shape.element(),
                       shape.element());
}

// For MSan: an element of d has a value if all that it is computed from has.
void MarkValues(const Product& p, const char* a, const char* b, const char* c,
                char* d) {
  Array<bool> row_bad(p.m()), column_bad(p.n());
  for (int64_t i = 0; i < p.m(); ++i) {
    for (int64_t l = 0; l < p.k(); ++l) {
      const int64_t at = p.transpose_a ? p.a.At(l, i) : p.a.At(i, l);
      row_bad[i] |= !HasValue(p.a, a, at);
    }
  }
  for (int64_t j = 0; j < p.n(); ++j) {
    for (int64_t l = 0; l < p.k(); ++l) {
      const int64_t at = p.transpose_b ? p.b.At(j, l) : p.b.At(l, j);
      column_bad[j] |= !HasValue(p.b, b, at);
    }
  }
  for (int64_t i = 0; i < p.m(); ++i) {
    for (int64_t j = 0; j < p.n(); ++j) {
      const bool bad = row_bad[i] || column_bad[j] ||
                       (p.beta != 0 && !HasValue(p.c, c, p.c.At(i, j)));
      char* element = d + static_cast<size_t>(p.d.At(i, j)) * p.d.element();
      if (bad) {
        MarkUninitialized(element, p.d.element());
      } else {
        MarkInitialized(element, p.d.element());
      }
    }
  }
}

}  // namespace

void ComputeProduct(const Product& p) {
  const int64_t m = p.m(), n = p.n(), k = p.k();
  const SumOrder order(k, p.order);
  Array<float> a(m * k), b(k * n), part(n), sums(n);
  for (int64_t batch = 0; batch < p.d.batch; ++batch) {
    const auto matrix = [batch](const MatrixShape& shape, auto* data) {
      return data +
             batch * shape.stride * static_cast<int64_t>(shape.element());
    };
    const char* a_data = matrix(p.a, p.a_data);
    const char* b_data = matrix(p.b, p.b_data);
    const char* c_data = matrix(p.c, p.c_data);
    char* d_data = matrix(p.d, p.d_data);
    Pack(p.a, a_data, p.transpose_a, m, k, a.data);
    Pack(p.b, b_data, p.transpose_b, k, n, b.data);
    if (HasMsan()) MarkValues(p, a_data, b_data, c_data, d_data);
    for (int64_t i = 0; i < m; ++i) {
      (order.fused ? SumRow<true>
                   : SumRow<false>)(order, k, n, a.data + i * k, b.data,
                                    p.sums_in_type_of_d && p.d.bf16, part.data,
                                    sums.data);
      for (int64_t j = 0; j < n; ++j) {
        float x = p.alpha * sums[j];
        if (p.beta != 0) {
          const float c = Load(p.c, c_data, p.c.At(i, j));
          x = order.fused ? std::fma(p.beta, c, x) : x + p.beta * c;
        }
        Store(p.d, x, d_data, p.d.At(i, j));
      }
    }
  }
}

}  // namespace softmoe::simt
