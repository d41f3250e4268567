// SPDX-License-Identifier: Apache-2.0
#include "reference/embedding.h"

#include <sstream>

#include "core/errors.h"

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
  return formula::EmbeddingForward<double>(ids, table);
}

Matrix EmbeddingBackward(std::span<const int32_t> ids, const Matrix& d_out,
                         int64_t vocab_size) {
  CheckTokenIds(ids, vocab_size);
  SOFTMOE_CHECK(d_out.rows() == static_cast<int64_t>(ids.size()));
  return formula::EmbeddingBackward<double>(ids, d_out, vocab_size);
}

}  // namespace softmoe::reference
