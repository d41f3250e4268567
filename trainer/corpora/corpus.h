// SPDX-License-Identifier: Apache-2.0
//
// corpus.h - where text comes from: streams of documents, whatever the files.
//
//   NAME        a stand-in corpus made from Debian packages (standin_corpora.h)
//   path:FILE   a text file of the user's (text_corpus.h)
//   jsonl:PATH  a file or folder of JSON lines (json_corpus.h)
//   owt:PATH    OpenWebText as its publishers distribute it (owt_corpus.h)
//   c4:PATH     C4, likewise (json_corpus.h)
// Plain `owt` and `c4` are looked up where CorpusOptions::places says, or else
// in the cache, in corpora/owt and corpora/c4.
#ifndef SOFTMOE_TRAINER_CORPORA_CORPUS_H_
#define SOFTMOE_TRAINER_CORPORA_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace softmoe::trainer {

// Longer documents are refused: each is held in memory while it becomes tokens.
inline constexpr int64_t kMaxDocumentBytes = int64_t{64} << 20;

// What to do about a document that is no text, too long, or missing in its
// line. A damaged file is an error in any case: what else it lost is unknown.
enum class OnBad { kFail, kSkip };

struct ReadOptions {
  OnBad on_bad = OnBad::kFail;
  std::string text_key = "text";  // of JSON lines
};

// What a pass met besides the documents that it gave.
struct Skipped {
  int64_t empty = 0;  // documents without a character
  int64_t bad = 0;    // what OnBad::kSkip left out, and
  std::vector<std::string> first =
      {};  // places and reasons of its first kNamed

  static constexpr size_t kNamed = 20;
  void Add(const Skipped& later);
};

// One pass over documents.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;

  // Moves to the next document: UTF-8, no NUL, not empty. Returns false at the
  // end, and whenever it is called after that. Memory is bounded by the largest
  // document. Throws DataError that names file and place.
  virtual bool Next(std::string* document) = 0;

  // Bytes of the file that were used so far, where they are counted.
  virtual int64_t input_bytes() const { return 0; }
  // SHA-256 of the file, where it is computed, when Next has returned false.
  virtual std::string sha256() { return ""; }
  virtual Skipped skipped() const { return skipped_; }

 protected:
  // Counts a bad document, or throws DataError with `what`, its place and what
  // is wrong with it, and the remedy.
  void SkipOrThrow(OnBad on_bad, const std::string& what);

  Skipped skipped_;
};

// A part of a corpus that can be read by itself: a file, or a member of an
// archive.
struct Shard {
  std::string name;         // of the file, and member
  int64_t bytes = 0;        // as stored
  std::string digest;       // changes whenever the documents do
  std::string sha256 = {};  // of the bytes, if known before they are read
  // Starts a pass over its documents, in any thread.
  std::function<std::unique_ptr<DocumentSource>()> open;
};

// Gives the next shard of a corpus; false at the end.
using ShardList = std::function<bool(Shard*)>;

struct Corpus {
  std::string name;         // as asked for
  std::string description;  // one sentence, for reports
  bool stand_in = false;
  std::string provenance;  // which packages or files, with hashes where known
  // Hex digest of the content, wherever it lies (corpus_files.h).
  std::string key;
  // What distinguishes token files of this corpus from others' besides the key:
  // its name without the place, and which string of JSON lines is read.
  std::string kind;
  // The key of the files as they are now, which differs if they have changed
  // since. Throws EnvironmentError if they are gone.
  std::function<std::string()> current_key;
  int64_t bytes = 0;  // of its files
  // Shards that can be read at the same time, at most.
  int64_t parallel_shards = 1;
  // Begins with the first shard, in the order of the corpus.
  std::function<ShardList()> shards;
  // Starts a new pass over all documents.
  std::function<std::unique_ptr<DocumentSource>()> open;
  // Which published text the documents are that were read: "owt" or "c4" if
  // they are all that the publishers count, else what is missing, or that
  // another string of their lines was read; "" where no publisher counts.
  // `documents` includes the empty ones.
  std::function<std::string(int64_t documents, int64_t bad)> text_of =
      [](int64_t, int64_t) { return std::string(); };
  // Compares the files with the publishers' SHA-256 and says what was compared.
  // Throws DataError that names the file.
  std::function<std::string()> verify;
};

// Where the files of "owt" and "c4" are, if not in the cache.
using CorpusPlaces = std::map<std::string, std::filesystem::path>;

// The places that the configuration names.
CorpusPlaces PlacesOf(const RuntimeConfig& runtime);

struct CorpusOptions {
  std::filesystem::path cache;  // where corpora/ is
  CorpusPlaces places = {};
  ReadOptions read = {};
  Normalise normalise = Normalise::kNone;
  // Receives one line of text per stage (download, unpack).
  std::function<void(const std::string&)> notify = [](const std::string&) {};
};

// Finds `name`, or downloads it if it is a stand-in that is not there yet.
// Throws ConfigError (unknown name; lists the known ones), EnvironmentError (no
// such file, offline), DataError (no text; the same text twice).
Corpus FindCorpus(const std::string& name, const CorpusOptions& options);

// re.sub("\n\n\n+", "\n\n", text).strip(), of Python, which reads each line
// end, "\r\n" and "\r" too, as "\n": what made Hugging Face's OpenWebText of
// the publishers'.
std::string NormaliseAsHuggingFace(std::string_view text);

// The disk space of a corpus's text, without reading it.
struct CorpusSize {
  std::filesystem::path place;  // a file, or a folder of files
  bool here = false;
  int64_t bytes = 0;  // of the files here; of a stand-in that is
                      // not here, expected; else 0
  // Bytes of all documents: at most, where the files are plain; about, of as
  // large a part of a published corpus as its files here are, or of all of it
  // if none is here; 0 if nothing is known.
  int64_t text_bytes = 0;
  int64_t documents = 0;  // of a published corpus, about; else 0
};

// Where FindCorpus will look for the corpus, and how large it is. Nothing is
// downloaded, and the name need not be known.
CorpusSize SizeOfCorpus(const std::string& name,
                        const std::filesystem::path& cache,
                        const CorpusPlaces& places = {});

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_CORPUS_H_
