// SPDX-License-Identifier: Apache-2.0
#include "reference/embedding.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference {
namespace {

using testing::RandomMatrix;

const std::vector<int32_t> kIds = {3, 0, 3, 1, 3};

TEST(Embedding, TakesRowsOfTheTable) {
  const Matrix table = RandomMatrix(4, 3, 1, 1);
  const Matrix hidden = EmbeddingForward(kIds, table);
  ASSERT_EQ(hidden.rows(), 5);
  for (int t = 0; t < 5; ++t) EXPECT_EQ(hidden.row(t), table.row(kIds[t]));
}

TEST(Embedding, GradientSumsRepeatedTokensAndLeavesOthersZero) {
  Matrix d_out(5, 1);
  d_out << 1, 2, 4, 8, 16;
  Matrix expected(4, 1);
  expected << 2, 8, 0, 21;
  EXPECT_EQ(EmbeddingBackward(kIds, d_out, 4), expected);
}

TEST(Embedding, RefusesIdsOutsideTheVocabularyAndNamesThem) {
  for (const int32_t bad : {-1, 4, 2147483647}) {
    EXPECT_TRUE(Says(
        MessageOf<DataError>([&] {
          EmbeddingForward(std::vector<int32_t>{0, 1, bad}, Matrix::Ones(4, 2));
        }),
        "token 2 has id " + std::to_string(bad), "[0, 4)"))
        << bad;
    EXPECT_THROW(
        EmbeddingBackward(std::vector<int32_t>{bad}, Matrix::Ones(1, 2), 4),
        DataError);
  }
}

TEST(Embedding, RefusesACotangentOfAnotherLength) {
  EXPECT_THROW(EmbeddingBackward(kIds, Matrix::Ones(4, 2), 4), InternalError);
}

}  // namespace
}  // namespace softmoe::reference
