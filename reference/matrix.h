// SPDX-License-Identifier: Apache-2.0
//
// matrix.h - the matrices of the reference: double, row-major, Eigen.
//
// Eigen runs unvectorised and unparallelised here (DESIGN.md, ruling 9). The
// macros that say so change Eigen's allocator too, so everything that includes
// this header must agree: target :matrix hands them to whoever depends on it.
#ifndef SOFTMOE_REFERENCE_MATRIX_H_
#define SOFTMOE_REFERENCE_MATRIX_H_

#if !defined(EIGEN_DONT_VECTORIZE) || !defined(EIGEN_DONT_PARALLELIZE)
#error "depend on //reference:matrix, which defines how Eigen is compiled"
#endif

#include <eigen3/Eigen/Dense>

#include "core/errors.h"

namespace softmoe::reference {

using Matrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using BoolMatrix =
    Eigen::Matrix<bool, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

// a b, each element summed over the inner index in ascending order. Not
// Eigen's operator*: that one blocks by the cache sizes of the machine it
// runs on, and the reference must give the same bits everywhere.
inline Matrix Multiply(const Matrix& a, const Matrix& b) {
  SOFTMOE_CHECK(a.cols() == b.rows())
      << "[" << a.rows() << ", " << a.cols() << "] times [" << b.rows() << ", "
      << b.cols() << "]";
  return a.lazyProduct(b);
}

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_MATRIX_H_
