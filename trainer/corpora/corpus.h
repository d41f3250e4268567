// SPDX-License-Identifier: Apache-2.0
//
// corpus.h - where text comes from: a stream of documents, whatever the files.
//
//   NAME       a stand-in corpus made from Debian packages (standin_corpora.h)
//   path:FILE  a text file of the user's (text_corpus.h)
//   owt:PATH   OpenWebText as its publishers distribute it (owt_corpus.h)
//   c4:PATH    C4, likewise (c4_corpus.h)
// Plain `owt` and `c4` are looked up in the cache, in corpora/owt and
// corpora/c4.
#ifndef SOFTMOE_TRAINER_CORPORA_CORPUS_H_
#define SOFTMOE_TRAINER_CORPORA_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace softmoe::trainer {

// Longer documents are refused: each is held in memory while it becomes tokens.
inline constexpr int64_t kMaxDocumentBytes = int64_t{64} << 20;

// One pass over the documents of a corpus.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  // Moves to the next document: UTF-8, no NUL, not empty. Returns false at
  // the end. Memory is bounded by the largest document. Throws DataError that
  // names file and place.
  virtual bool Next(std::string* document) = 0;
};

struct Corpus {
  std::string name;         // as asked for
  std::string description;  // one sentence, for reports
  bool stand_in = false;
  std::string provenance;  // which packages or files, with hashes where known
  // Hex digest that changes whenever the documents do. For published corpora,
  // which take long to read, it covers names, sizes and times of the files.
  std::string key;
  // The key of the files as they are now, which differs if they have changed
  // since. Throws EnvironmentError if they are gone.
  std::function<std::string()> current_key;
  // Starts a new pass over the documents.
  std::function<std::unique_ptr<DocumentSource>()> open;
};

struct CorpusOptions {
  std::filesystem::path cache;  // where corpora/ is
  // Receives one line of text per stage (download, unpack).
  std::function<void(const std::string&)> notify = [](const std::string&) {};
};

// Finds `name`, or downloads it if it is a stand-in that is not there yet.
// Throws ConfigError (unknown name; lists the known ones), EnvironmentError (no
// such file, offline), DataError (no text).
Corpus FindCorpus(const std::string& name, const CorpusOptions& options);

// The disk space of a corpus's text, without reading it.
struct CorpusSize {
  std::filesystem::path place;  // a file, or a folder of files
  bool here = false;
  int64_t bytes = 0;  // of the text here; of a stand-in that is
                      // not here, expected; else 0
};

// Where FindCorpus will look for the corpus, and how large it is. Nothing is
// downloaded, and the name need not be known.
CorpusSize SizeOfCorpus(const std::string& name,
                        const std::filesystem::path& cache);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_CORPUS_H_
