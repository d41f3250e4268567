// SPDX-License-Identifier: Apache-2.0
//
// document_source.h - one pass over the documents of a corpus.
#ifndef SOFTMOE_TRAINER_CORPORA_DOCUMENT_SOURCE_H_
#define SOFTMOE_TRAINER_CORPORA_DOCUMENT_SOURCE_H_

#include <cstdint>
#include <string>

namespace softmoe::trainer {

// Longer documents are refused: each is held in memory while it becomes tokens.
inline constexpr int64_t kMaxDocumentBytes = int64_t{64} << 20;

class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  // Moves to the next document: UTF-8, no NUL, not empty. Returns false at
  // the end. Memory is bounded by the largest document. Throws DataError that
  // names file and place.
  virtual bool Next(std::string* document) = 0;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_DOCUMENT_SOURCE_H_
