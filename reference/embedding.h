// SPDX-License-Identifier: Apache-2.0
//
// embedding.h - rows of the embedding table by token id (reference, double).
//
//   out_t = table[id_t],   d_table[v] = sum of d_out_t over id_t = v
//                                                            SPEC.md 3.2
#ifndef SOFTMOE_REFERENCE_EMBEDDING_H_
#define SOFTMOE_REFERENCE_EMBEDDING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "reference/matrix.h"
#include "reference/scalar.h"

namespace softmoe::reference {

// Throws DataError, naming the token, unless every id is in [0, vocab_size).
void CheckTokenIds(std::span<const int32_t> ids, int64_t vocab_size);

// Returns the row of each id: table [vocab_size, d_model], ids [num_tokens] ->
// [num_tokens, d_model]. Throws DataError if an id is outside the table.
Matrix EmbeddingForward(std::span<const int32_t> ids, const Matrix& table);

// Gradient with respect to the table [vocab_size, d_model] for the cotangent
// `d_out` [num_tokens, d_model]: each row sums the rows of its tokens. Errors
// as EmbeddingForward.
Matrix EmbeddingBackward(std::span<const int32_t> ids, const Matrix& d_out,
                         int64_t vocab_size);

// Both functions over any scalar (scalar.h).
namespace formula {

// The row of each id.
template <typename N>
MatrixOf<N> EmbeddingForward(std::span<const int32_t> ids,
                             const MatrixOf<N>& table) {
  MatrixOf<N> hidden(static_cast<int64_t>(ids.size()), table.cols());
  for (size_t t = 0; t < ids.size(); ++t) hidden.row(t) = table.row(ids[t]);
  return hidden;
}

// The sum of the rows of each id.
template <typename N>
MatrixOf<N> EmbeddingBackward(std::span<const int32_t> ids,
                              const MatrixOf<N>& d_out, int64_t vocab_size) {
  MatrixOf<N> d_table(vocab_size, d_out.cols());
  for (int64_t j = 0; j < d_out.cols(); ++j) {
    std::vector<Sum<N>> sums(vocab_size);
    for (size_t t = 0; t < ids.size(); ++t) sums[ids[t]].Add(d_out(t, j));
    for (int64_t id = 0; id < vocab_size; ++id) d_table(id, j) = sums[id].Get();
  }
  return d_table;
}

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_EMBEDDING_H_
