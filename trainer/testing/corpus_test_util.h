// SPDX-License-Identifier: Apache-2.0
//
// corpus_test_util.h - corpora for tests: generated English sentences, and
// Debian packages.
#ifndef SOFTMOE_TRAINER_TESTING_CORPUS_TEST_UTIL_H_
#define SOFTMOE_TRAINER_TESTING_CORPUS_TEST_UTIL_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace softmoe::trainer {

// Returns `count` documents of one to six sentences from a small grammar, the
// same for the same arguments. Words are distributed unevenly, as in real text.
std::vector<std::string> TestDocuments(int64_t count, uint64_t seed = 1);

// The documents as a text file for `path:FILE`, with a blank line after each.
std::string TestText(const std::vector<std::string>& documents);

// Returns the documents that `source`, a pointer to a DocumentSource, still
// has, and what it gives after its end, where a reader of batches asks again.
template <typename Source>
std::vector<std::string> DocumentsOf(const Source& source) {
  std::vector<std::string> documents;
  std::string document;
  while (source->Next(&document)) documents.push_back(document);
  if (source->Next(&document)) documents.push_back("(end) " + document);
  return documents;
}

// Writes `content` compressed, as one member.
void WriteGzip(const std::filesystem::path& path, const std::string& content);

// Writes `content` as it is ("plain"), or compressed by "gzip", "xz" or "zstd".
void WritePacked(const std::filesystem::path& path, const std::string& content,
                 const std::string& form);

// Name and content.
using ArchiveMembers = std::vector<std::pair<std::string, std::string>>;

// Returns the bytes of a tar with these members, xz-compressed if asked for.
std::string Tar(const ArchiveMembers& members, bool xz);

// Path and content; gzip-compressed if the path ends with ".dz".
using PackageFiles = std::vector<std::pair<std::string, std::string>>;

// Builds NAME_VERSION_all.deb in `folder` with dpkg-deb; returns its path.
std::filesystem::path BuildDeb(const std::filesystem::path& folder,
                               const std::string& name,
                               const std::string& version,
                               const PackageFiles& files);

// Returns a dictd database NAME of these entries, as PackageFiles for BuildDeb.
PackageFiles DictFiles(const std::string& name,
                       const std::vector<std::string>& entries);

// During its lifetime, programs are looked up in `folder` first, and an
// `apt-get` there runs the given shell script.
class FakeAptGet {
 public:
  FakeAptGet(const std::filesystem::path& folder, const std::string& script);
  ~FakeAptGet();

 private:
  std::string old_path_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TESTING_CORPUS_TEST_UTIL_H_
