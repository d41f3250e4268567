// SPDX-License-Identifier: Apache-2.0
//
// product.h - the arithmetic of a simulated matrix product: one legal order of
// its sums, out of many.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_PRODUCT_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_PRODUCT_H_

#include <cstddef>
#include <cstdint>

namespace softmoe::simt {

// Elements of fp32, or of bf16 as the upper half of an fp32.
struct MatrixShape {
  bool bf16;
  bool row_major;
  int64_t rows, cols, ld;
  int32_t batch;
  int64_t stride;  // of the batch, in elements

  size_t element() const { return bf16 ? 2 : 4; }
  // Rows if row_major, else columns: runs of consecutive elements.
  int64_t lines() const { return row_major ? rows : cols; }
  int64_t line_size() const { return row_major ? cols : rows; }
  int64_t At(int64_t row, int64_t col) const {
    return row_major ? row * ld + col : col * ld + row;
  }
};

struct Product {
  MatrixShape a, b, c, d;
  bool transpose_a, transpose_b;
  float alpha, beta;
  uint64_t order;          // selects the order of the sums
  bool sums_in_type_of_d;  // whether partial sums are rounded to it
  bool on_tensor_cores;    // bf16 operands only
  const char *a_data, *b_data, *c_data;
  char* d_data;

  int64_t m() const { return d.rows; }
  int64_t n() const { return d.cols; }
  int64_t k() const { return transpose_a ? a.rows : a.cols; }
};

// Sums are in fp32: partial sums over 4 to 32 consecutive products, in
// ascending or descending order, are added in a shuffled order; multiply-adds
// are fused or not; d is rounded once, or after each part. All elements share
// one order. Uninstrumented; tells MSan which elements of d have a value.
//
// On tensor cores, as an H100's were found to compute (arXiv 2512.07004): 16
// products at a time are added to the sum so far. All terms are exact, and are
// aligned to the point of the one with the largest exponent: digits below the
// 25th after it are cut off, and so are digits of the total beyond the 24 of a
// float. A part of p products thus loses at most p/2 + 2 roundings to nearest:
// if p >= 4, or if there is only one part, no more than sums are allowed
// (error_bounds.h: p, and one). It may lose more, at worst 2.5 times as much,
// where most parts have fewer than four nonzero products.
void ComputeProduct(const Product& product);

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_PRODUCT_H_
