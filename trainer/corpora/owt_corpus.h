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
#include <string>
#include <vector>

#include "trainer/corpora/corpus.h"
#include "trainer/corpora/corpus_files.h"

namespace softmoe::trainer {

// At most this much of a member that is a shard by itself is held in memory: a
// longer archive is refused, and a longer document is bad.
inline constexpr int64_t kMaxMemberBytes = int64_t{64} << 20;

// Reads an archive, and archives in it. A DataError names archive and member.
std::unique_ptr<DocumentSource> OpenOwt(const std::filesystem::path& path,
                                        const ReadOptions& options = {});

// Lists the shards of the archives in turn: an archive that begins with a
// document is one; in others, each .txt and each .xz (but .tar.xz) is one.
ShardList OwtShards(std::vector<DigestedFile> files,
                    const ReadOptions& options);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_OWT_CORPUS_H_
