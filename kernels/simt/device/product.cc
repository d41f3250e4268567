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

// Rounds to nearest, ties to even; a NaN stays a NaN.
uint16_t ToBf16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(x));
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return static_cast<uint16_t>((std::isnan(x) ? bits | 0x400000 : rounded) >>
                               16);
}

float RoundedToBf16(float x) {
  return FromBits(static_cast<uint32_t>(ToBf16(x)) << 16);
}

void Store(const MatrixShape& shape, float x, char* data, int64_t i) {
  if (!shape.bf16) {
    __builtin_memcpy(data + 4 * i, &x, sizeof(x));
    return;
  }
  const uint16_t half = ToBf16(x);
  __builtin_memcpy(data + 2 * i, &half, sizeof(half));
}

constexpr int64_t kTensorCoreBlock = 16;

// The order of the k products of a sum, and the parts that they are cut into.
struct SumOrder {
  Array<int64_t> index;  // [k]
  int64_t part;          // products in each; the last may have fewer
  bool fused;

  SumOrder(int64_t k, uint64_t order, bool on_tensor_cores) : index(k) {
    Random random(order);
    part = int64_t{4} << random.Below(4);
    if (on_tensor_cores) part = kTensorCoreBlock;
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

// sums[n] = row a[k] times b[k, n], summed in parts (part[n] is scratch) and,
// if `round`, rounded after each part.
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
      if (round) sums[j] = RoundedToBf16(sums[j]);
    }
  }
}

// ---- Tensor cores

constexpr int kTensorCoreDigits = 25;  // after the point
constexpr int kNoExponent = -2000;     // the exponent of 0

// The exponent of the most significant digit; subnormals have the smallest.
int ExponentOf(float x) {
  if (x == 0) return kNoExponent;
  const int exponent = std::ilogb(x);
  return exponent < -126 ? -126 : exponent;
}

float TowardsZero(double x) {
  const auto nearest = static_cast<float>(x);
  return std::isfinite(nearest) && std::fabs(double{nearest}) > std::fabs(x)
             ? std::nextafter(nearest, 0.0f)
             : nearest;
}

// A matrix, and the exponents of its elements.
struct Operand {
  const float* values;
  const int* exponents;
};

// Returns `sum` plus the products of a [k, 1] and column j of b [k, n] in the
// rows `index` [size].
float AddBlock(float sum, const int64_t* index, int64_t size, const Operand& a,
               const Operand& b, int64_t n, int64_t j) {
  int largest = ExponentOf(sum);
  bool finite = std::isfinite(sum);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t l = index[i], at = l * n + j;
    finite &= std::isfinite(a.values[l]) && std::isfinite(b.values[at]);
    const int exponent = a.exponents[l] + b.exponents[at];
    largest = exponent > largest ? exponent : largest;
  }
  if (!finite) {
    for (int64_t i = 0; i < size; ++i) {
      sum += a.values[index[i]] * b.values[index[i] * n + j];
    }
    return sum;
  }
  if (largest < 2 * -126) return sum;  // the sum and all products are 0
  const double last_digit = std::ldexp(1.0, largest - kTensorCoreDigits);
  double digits = std::trunc(double{sum} / last_digit);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t l = index[i], at = l * n + j;
    digits +=
        std::trunc(double{a.values[l]} * double{b.values[at]} / last_digit);
  }
  return TowardsZero(digits * last_digit);
}

// Does what SumRow does, as tensor cores do it.
void SumRowOnTensorCores(const SumOrder& order, int64_t k, int64_t n,
                         const Operand& a, const Operand& b, bool round,
                         float* sums) {
  for (int64_t j = 0; j < n; ++j) {
    sums[j] = 0;
    for (int64_t begin = 0; begin < k; begin += order.part) {
      const int64_t size = k - begin < order.part ? k - begin : order.part;
      sums[j] = AddBlock(sums[j], order.index.data + begin, size, a, b, n, j);
      if (round) sums[j] = RoundedToBf16(sums[j]);
    }
  }
}

// Writes op(matrix) [rows, cols] to `out`, as fp32, row-major.
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

// For MSan: an element of d has a value if everything it depends on has one.
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
  const SumOrder order(k, p.order, p.on_tensor_cores);
  Array<float> a(m * k), b(k * n), part(n), sums(n);
  Array<int> a_exponents(p.on_tensor_cores ? m * k : 0);
  Array<int> b_exponents(p.on_tensor_cores ? k * n : 0);
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
    if (p.on_tensor_cores) {
      for (int64_t i = 0; i < m * k; ++i) a_exponents[i] = ExponentOf(a[i]);
      for (int64_t i = 0; i < k * n; ++i) b_exponents[i] = ExponentOf(b[i]);
    }
    const bool round = p.sums_in_type_of_d && p.d.bf16;
    for (int64_t i = 0; i < m; ++i) {
      const float* const row = a.data + i * k;
      if (p.on_tensor_cores) {
        SumRowOnTensorCores(order, k, n, {row, a_exponents.data + i * k},
                            {b.data, b_exponents.data}, round, sums.data);
      } else {
        (order.fused ? SumRow<true> : SumRow<false>)(order, k, n, row, b.data,
                                                     round, part.data,
                                                     sums.data);
      }
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
