// SPDX-License-Identifier: Apache-2.0
//
// random_matrix.h - test data: reproducible normals, addressed by a name, and
// rows that a test writes out.
#ifndef SOFTMOE_REFERENCE_TESTING_RANDOM_MATRIX_H_
#define SOFTMOE_REFERENCE_TESTING_RANDOM_MATRIX_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "core/philox.h"
#include "reference/matrix.h"

namespace softmoe::reference::testing {

// Independent N(0, scale^2) elements; `seed` and `which` name the draw.
inline Matrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed,
                           uint32_t which, double scale = 1) {
  Normals normals(seed, which);
  Matrix result(rows, cols);
  for (int64_t i = 0; i < result.size(); ++i) {
    result.data()[i] = scale * normals.Next();
  }
  return result;
}

inline Vector RandomVector(int64_t size, uint64_t seed, uint32_t which,
                           double scale = 1) {
  return RandomMatrix(1, size, seed, which, scale).row(0);
}

inline Vector Row(std::initializer_list<double> values) {
  Vector row(values.size());
  std::copy(values.begin(), values.end(), row.begin());
  return row;
}

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_RANDOM_MATRIX_H_
