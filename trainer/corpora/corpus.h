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

// Longer documents are refused, as each is held in memory while it is encoded.
inline constexpr int64_t kMaxDocumentBytes = int64_t{64} << 20;

// What to do about a document that is not text, is too long, or is missing from
// its line. A damaged file is always an error: what else it lost is unknown.
enum class OnBad { kFail, kSkip };

struct ReadOptions {
  OnBad on_bad = OnBad::kFail;
  std::string text_key = "text";  // of JSON lines
};

// What a pass left out.
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

  // Reads the next document: UTF-8, no NUL, not empty. Returns false at the end
  // and on every later call. Memory is bounded by the largest document. Throws
  // a DataError that names file and place.
  virtual bool Next(std::string* document) = 0;

  // Bytes of the file used so far; 0 if they are not counted.
  virtual int64_t input_bytes() const { return 0; }
  // SHA-256 of the file once Next has returned false; "" if it is not computed.
  virtual std::string sha256() { return ""; }
  virtual Skipped skipped() const { return skipped_; }

 protected:
  // Counts a bad document or, under kFail, throws a DataError with the remedy;
  // `what` is its place and what is wrong with it.
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

// Writes the next shard of a corpus; returns false at the end.
using ShardList = std::function<bool(Shard*)>;

struct Corpus {
  std::string name;         // as asked for
  std::string description;  // one sentence, for reports
  bool stand_in = false;
  std::string provenance;  // which packages or files, with hashes where known
  // Hex digest of the content, independent of its place (corpus_files.h).
  std::string key;
  // Distinguishes token files of this corpus from others', besides the key: its
  // name without the place, and which string of JSON lines is read.
  std::string kind;
  // Returns the key of the files as they are at the call, which differs if they
  // have changed since. Throws EnvironmentError if they are gone.
  std::function<std::string()> current_key;
  int64_t bytes = 0;  // of its files
  // At most this many shards can be read at the same time.
  int64_t parallel_shards = 1;
  // Lists the shards from the first, in the order of the corpus.
  std::function<ShardList()> shards;
  // Starts a new pass over all documents.
  std::function<std::unique_ptr<DocumentSource>()> open;
  // Says which published text the documents that were read are: "owt" or "c4"
  // if they are all that the publishers count, else how they differ, or that
  // another string of their lines was read; "" if no publisher counts them.
  // `documents` includes the empty ones.
  std::function<std::string(int64_t documents, int64_t bad)> text_of =
      [](int64_t, int64_t) { return std::string(); };
  // Compares the files with the publishers' SHA-256 and says what was compared.
  // Throws a DataError that names the file.
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
// Throws ConfigError (unknown name; lines of JSON as owt without `normalise`),
// EnvironmentError (no such file, offline), DataError (no text; the same text
// twice), StoppedError.
Corpus FindCorpus(const std::string& name, const CorpusOptions& options);

// Python's re.sub("\n\n\n+", "\n\n", text).strip() of a text read with each
// line end ("\r\n" and "\r", too) as "\n". This is what made Hugging Face's
// OpenWebText from the publishers'.
std::string NormaliseAsHuggingFace(std::string_view text);

// The disk space of a corpus's text, without reading it.
struct CorpusSize {
  std::filesystem::path place;  // a file, or a folder of files
  bool here = false;
  int64_t bytes = 0;  // of the files here; of a stand-in that is
                      // not here, expected; else 0
  // Bytes of all documents: an upper bound if the files are plain; an estimate
  // for the part of a published corpus whose files are here, or for all of it
  // if there is no such place; 0 if nothing is known.
  int64_t text_bytes = 0;
  int64_t documents = 0;  // estimate for a published corpus; else 0
};

// Returns where FindCorpus will look for the corpus, and how large it is.
// Downloads nothing; the name may be unknown.
CorpusSize SizeOfCorpus(const std::string& name,
                        const std::filesystem::path& cache,
                        const CorpusPlaces& places = {});

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_CORPUS_H_
