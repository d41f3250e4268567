// SPDX-License-Identifier: Apache-2.0
//
// json_corpus.h - documents of a file with one JSON object per line, the form
// in which C4 is published (allenai/c4, folder en:
// c4-train.00000-of-01024.json.gz and so on).
#ifndef SOFTMOE_TRAINER_CORPORA_JSON_CORPUS_H_
#define SOFTMOE_TRAINER_CORPORA_JSON_CORPUS_H_

#include <filesystem>
#include <memory>

#include "trainer/corpora/corpus.h"

namespace softmoe::trainer {

// Reads a file, plain or packed with gzip, xz or zstd: each document is the
// member `options.text_key` of an object. Blank lines are skipped. A DataError
// names file and line.
std::unique_ptr<DocumentSource> OpenJsonLines(const std::filesystem::path& path,
                                              const ReadOptions& options = {});

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_JSON_CORPUS_H_
