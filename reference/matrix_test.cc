// SPDX-License-Identifier: Apache-2.0
#include "reference/matrix.h"

#include <gtest/gtest.h>

#include "core/errors.h"

namespace softmoe::reference {
namespace {

TEST(Matrix, AnIndexBeyondItIsAnError) {
  Matrix matrix = Matrix::Zero(2, 3);
  Vector vector = Vector::Zero(3);
  EXPECT_THROW(matrix(2, 0) = 1, InternalError);
  EXPECT_THROW(matrix(0, 3) = 1, InternalError);
  EXPECT_THROW(matrix(0, -1) = 1, InternalError);
  EXPECT_THROW(vector[3] = 1, InternalError);
  EXPECT_THROW(vector(-1) = 1, InternalError);
  EXPECT_THROW((void)matrix.row(2), InternalError);
}

TEST(Matrix, OperandsOfDifferentSizesAreAnError) {
  const Matrix wide = Matrix::Zero(2, 3), tall = Matrix::Zero(3, 2);
  EXPECT_THROW((void)Matrix(wide + tall), InternalError);
  EXPECT_THROW((void)formula::Plus<double>(wide, tall), InternalError);
  EXPECT_THROW((void)Multiply(wide, wide), InternalError);
  EXPECT_NO_THROW((void)Multiply(wide, tall));
}

// Values worked out by hand.
TEST(Matrix, SumsAndProducts) {
  Matrix a(2, 2), b(2, 2), product(2, 2), sum(2, 2);
  a << 1, 2, 3, 4;
  b << 5, 6, 7, 8;
  product << 19, 22, 43, 50;
  sum << 6, 8, 10, 12;
  EXPECT_EQ(Multiply(a, b), product);
  EXPECT_EQ(formula::Plus<double>(a, b), sum);
  EXPECT_EQ(formula::ColumnSums<double>(b), Vector({{12, 14}}));
}

}  // namespace
}  // namespace softmoe::reference
