// SPDX-License-Identifier: Apache-2.0
//
// text_corpus.h - documents of a text file, plain or in gzip, xz or zstd.
//
// Documents are separated by the first of these that the file has:
//   1. a line of <|endoftext|>, with or without white space beside it
//   2. an empty line, or one of white space only (several count as one)
//   3. every line end
// So a file with one document per line, one with a blank line between
// paragraphs, and one with marked documents are each read as meant. White
// space around a document is dropped, and nothing inside it is changed.
#ifndef SOFTMOE_TRAINER_CORPORA_TEXT_CORPUS_H_
#define SOFTMOE_TRAINER_CORPORA_TEXT_CORPUS_H_

#include <filesystem>
#include <memory>
#include <string_view>

#include "trainer/corpora/corpus.h"

namespace softmoe::trainer {

inline constexpr std::string_view kDocumentSeparator = "<|endoftext|>";

// Opens a text file. Throws EnvironmentError if it cannot be read; DataError
// with place and remedy if it has no text, is not UTF-8, or has <|endoftext|>
// right beside text at ends of lines, but never alone on a line.
std::unique_ptr<DocumentSource> OpenTextFile(const std::filesystem::path& path);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_TEXT_CORPUS_H_
