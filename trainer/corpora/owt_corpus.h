// SPDX-License-Identifier: Apache-2.0
//
// owt_corpus.h - documents of OpenWebText from its publishers' files.
//
// openwebtext.tar.xz holds urlsf_subsetNN-NNN_data.xz, each a tar.xz of .txt
// files, one document each. Newer mirrors hold the same members in one tar per
// subset. Any of these, and a folder of them, can be read; nothing is unpacked
// to disk.
#ifndef SOFTMOE_TRAINER_CORPORA_OWT_CORPUS_H_
#define SOFTMOE_TRAINER_CORPORA_OWT_CORPUS_H_

#include <filesystem>
#include <memory>
#include <vector>

#include "trainer/corpora/corpus.h"

namespace softmoe::trainer {

// The archives (*.tar.xz, *.tar, *.xz) of a folder in order of their names, or
// `path` itself if it is a file. Throws EnvironmentError with the remedy if
// there is none.
std::vector<std::filesystem::path> FindOwtFiles(
    const std::filesystem::path& path);

// Reads the archives in turn. A DataError names archive and member.
std::unique_ptr<DocumentSource> OpenOwt(
    const std::vector<std::filesystem::path>& files);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_OWT_CORPUS_H_
