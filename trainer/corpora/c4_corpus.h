// SPDX-License-Identifier: Apache-2.0
//
// c4_corpus.h - documents of C4 from its publishers' files.
//
// c4-train.00000-of-01024.json.gz and so on (allenai/c4, folder en): gzip, one
// JSON object per line, the document in its member "text".
#ifndef SOFTMOE_TRAINER_CORPORA_C4_CORPUS_H_
#define SOFTMOE_TRAINER_CORPORA_C4_CORPUS_H_

#include <filesystem>
#include <memory>
#include <vector>

#include "trainer/corpora/corpus.h"

namespace softmoe::trainer {

// The files of a C4 folder, in order of their names: c4-train.*.json.gz, or,
// without any, all *.json.gz and *.json; or `path` itself if it is a file.
// Throws EnvironmentError with the remedy if nothing is found.
std::vector<std::filesystem::path> FindC4Files(
    const std::filesystem::path& path);

// Reads the files in turn. A DataError names file and line.
std::unique_ptr<DocumentSource> OpenC4(
    const std::vector<std::filesystem::path>& files);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_C4_CORPUS_H_
