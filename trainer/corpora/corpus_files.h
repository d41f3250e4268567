// SPDX-License-Identifier: Apache-2.0
//
// corpus_files.h - which files make up a corpus, whether they are its
// publishers', and what tells them from others.
#ifndef SOFTMOE_TRAINER_CORPORA_CORPUS_FILES_H_
#define SOFTMOE_TRAINER_CORPORA_CORPUS_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace softmoe::trainer {

enum class FilesOf { kOwt, kC4, kJson };

// Returns the files of a folder in order of their names, or `place` itself if
// it is a file. Also looks into one folder inside it: `subsets` for
// OpenWebText, `en` for C4.
//   kOwt   *.tar.xz, *.tar and *.xz
//   kC4    c4-train.*.json, also with .gz, .xz or .zst; without any, kJson's
//   kJson  *.json, *.jsonl and *.ndjson, also with .gz, .xz or .zst, but not
//          the PREFIX.json of token files
// Throws EnvironmentError with the remedy if there is none, or if one of these
// folders cannot be read; DataError if there is Parquet instead, if names say
// that a text is there twice (x.json beside x.json.gz, an archive beside its
// parts), if a name is nearly one of these (x.JSON, x.jsonl.bz2, x.jl, x.tgz),
// or if another folder inside, or one that a link there names, also has such
// files, unless it is a variant that C4's publishers have beside `en`.
std::vector<std::filesystem::path> FindCorpusFiles(
    FilesOf kind, const std::filesystem::path& place);

// Whether `name` is of lines of JSON: *.jsonl, *.ndjson, *.jsonlines, *.jl or
// *.ldjson, of which the last three are not read.
bool IsLinesOfJson(const std::string& name);

// Whether the folder has such files. Throws EnvironmentError if it cannot be
// read.
bool HasFiles(FilesOf kind, const std::filesystem::path& folder);

struct DigestedFile {
  std::filesystem::path path;
  int64_t bytes = 0;
  std::string digest;  // of the content
};

// Hashes the content of a file. For gzip files named like the publishers'
// shards of C4, the size, the ends and blocks in between are enough: gzip ends
// with a checksum of its last member, and these shards have only one. All of C4
// would take minutes on a fast disk, and an hour on a slow one.
DigestedFile Digest(FilesOf kind, const std::filesystem::path& path);

// Digests all of them with several threads. Throws DataError if two have the
// same content, unless they are empty; StoppedError (stop_signal.h).
std::vector<DigestedFile> DigestFiles(
    FilesOf kind, const std::vector<std::filesystem::path>& paths);

// Says, for provenance, how many files are the publishers', by name and size
// (OpenWebText's tars by name, its archive by size): "all 1024 shards", "3 of
// 1024 shards (missing: ...)", or "" if nothing is known of such files. Throws
// a DataError that names the file if some are the publishers' and one is not.
std::string CompareWithPublishers(FilesOf kind,
                                  const std::vector<DigestedFile>& files);

// Compares SHA-256 with the publishers', where known, and says for how many
// files. Throws a DataError that names a file that differs; StoppedError.
std::string VerifyFiles(FilesOf kind,
                        const std::vector<std::filesystem::path>& paths);

// Says what `documents`, besides which `bad` ones were left out, are: "owt" or
// "c4" if they are as many as the publishers count, else how they differ.
std::string TextOf(FilesOf kind, int64_t documents, int64_t bad);

// A published corpus, whole.
struct PublishedCorpus {
  std::string name;        // "owt" or "c4"
  int64_t file_bytes = 0;  // of its archive or shards
  int64_t text_bytes = 0;  // of all documents, about
  int64_t documents = 0;
};
// `kind` is kOwt or kC4.
PublishedCorpus Published(FilesOf kind);

// How to get the corpus: commands, sizes and times.
std::string HowToGet(FilesOf kind);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_CORPUS_FILES_H_
