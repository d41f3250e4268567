// SPDX-License-Identifier: Apache-2.0
//
// embedding.h - rows of the embedding table by token id (reference, double).
#ifndef SOFTMOE_REFERENCE_EMBEDDING_H_
#define SOFTMOE_REFERENCE_EMBEDDING_H_

#include <cstdint>
#include <span>

#include "reference/matrix.h"

namespace softmoe::reference {

// Throws DataError, naming the token, unless every id is in [0, vocab_size).
void CheckTokenIds(std::span<const int32_t> ids, int64_t vocab_size);

// table [vocab_size, d_model], ids [num_tokens] -> [num_tokens, d_model].
// Throws DataError if an id is outside the table.
Matrix EmbeddingForward(std::span<const int32_t> ids, const Matrix& table);

// Gradient with respect to the table [vocab_size, d_model] for the cotangent
// `d_out` [num_tokens, d_model]: each row sums the rows of its tokens.
Matrix EmbeddingBackward(std::span<const int32_t> ids, const Matrix& d_out,
                         int64_t vocab_size);

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_EMBEDDING_H_
