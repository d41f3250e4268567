// SPDX-License-Identifier: Apache-2.0
//
// matrix.h - the matrices of the reference: row-major, Eigen, of doubles or of
// any scalar (scalar.h); and plain sums and products of them.
//
// Eigen runs unvectorised and unparallelised here (DESIGN.md, ruling 9). The
// macros for that change Eigen's allocator, too, so everything that includes
// this header must agree: //reference hands them to its dependents. Eigen's
// assertions hold in every build: an index beyond a matrix, or two matrices of
// different sizes, are an InternalError, not a number from elsewhere.
#ifndef SOFTMOE_REFERENCE_MATRIX_H_
#define SOFTMOE_REFERENCE_MATRIX_H_

#if !defined(EIGEN_DONT_VECTORIZE) || !defined(EIGEN_DONT_PARALLELIZE)
#error "depend on //reference, which defines how Eigen is compiled"
#endif

#include <cstdint>

#include "core/errors.h"

#if defined(EIGEN_CORE_H)
#error "include reference/matrix.h before anything of Eigen"
#endif
#define eigen_assert(condition) SOFTMOE_CHECK(condition)
#include <eigen3/Eigen/Dense>

#include "reference/scalar.h"

namespace softmoe::reference {

template <typename N>
using MatrixOf =
    Eigen::Matrix<N, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename N>
using VectorOf = Eigen::Matrix<N, Eigen::Dynamic, 1>;
using Matrix = MatrixOf<double>;
using BoolMatrix = MatrixOf<bool>;
using Vector = VectorOf<double>;

namespace formula {

// sum_i a_i b_i of two rows or columns.
template <typename N, typename A, typename B>
N Dot(const A& a, const B& b) {
  Sum<N> sum;
  for (int64_t i = 0; i < a.size(); ++i) sum.AddProduct(a[i], b[i]);
  return sum.Get();
}

// a b, each element summed over the inner index in ascending order. Not Eigen's
// operator*, which blocks by the cache sizes of the machine it runs on: the
// reference must give the same bits everywhere.
template <typename N>
MatrixOf<N> Multiply(const MatrixOf<N>& a, const MatrixOf<N>& b) {
  SOFTMOE_CHECK(a.cols() == b.rows())
      << "[" << a.rows() << ", " << a.cols() << "] times [" << b.rows() << ", "
      << b.cols() << "]";
  MatrixOf<N> product(a.rows(), b.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < b.cols(); ++j) {
      product(i, j) = Dot<N>(a.row(i), b.col(j));
    }
  }
  return product;
}

// a + b
template <typename N>
MatrixOf<N> Plus(const MatrixOf<N>& a, const MatrixOf<N>& b) {
  SOFTMOE_CHECK(a.rows() == b.rows() && a.cols() == b.cols())
      << "[" << a.rows() << ", " << a.cols() << "] plus [" << b.rows() << ", "
      << b.cols() << "]";
  MatrixOf<N> sum(a.rows(), a.cols());
  for (int64_t i = 0; i < sum.size(); ++i) {
    sum.data()[i] = a.data()[i] + b.data()[i];
  }
  return sum;
}

// The sum over the rows.
template <typename N>
VectorOf<N> ColumnSums(const MatrixOf<N>& rows) {
  VectorOf<N> sums(rows.cols());
  for (int64_t j = 0; j < rows.cols(); ++j) {
    Sum<N> sum;
    for (int64_t t = 0; t < rows.rows(); ++t) sum.Add(rows(t, j));
    sums[j] = sum.Get();
  }
  return sums;
}

}  // namespace formula

inline Matrix Multiply(const Matrix& a, const Matrix& b) {
  return formula::Multiply<double>(a, b);
}

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_MATRIX_H_
