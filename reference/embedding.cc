// SPDX-License-Identifier: Apache-2.0
#include "reference/embedding.h"

#include <sstream>

namespace softmoe::reference {

void CheckTokenIds(std::span<const int32_t> ids, int64_t vocab_size) {
  for (size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || ids[t] >= vocab_size) {
      std::ostringstream message;
      message << "token " << t << " has id " << ids[t]
              << ", outside the vocabulary [0, " << vocab_size
              << "); was the token file made with another tokenizer?";
      throw DataError(message.str());
    }
  }
}

Matrix EmbeddingForward(std::span<const int32_t> ids, const Matrix& table) {
  CheckTokenIds(ids, table.rows());
  Matrix hidden(static_cast<int64_t>(ids.size()), table.cols());
  for (size_t t = 0; t < ids.size(); ++t) hidden.row(t) = table.row(ids[t]);
  return hidden;
}

Matrix EmbeddingBackward(std::span<const int32_t> ids, const Matrix& d_out,
                         int64_t vocab_size) {
  CheckTokenIds(ids, vocab_size);
  SOFTMOE_CHECK(d_out.rows() == static_cast<int64_t>(ids.size()));
  Matrix d_table = Matrix::Zero(vocab_size, d_out.cols());
  for (size_t t = 0; t < ids.size(); ++t) d_table.row(ids[t]) += d_out.row(t);
  return d_table;
}

}  // namespace softmoe::reference
