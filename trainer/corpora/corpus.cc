// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/corpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/files/input_file.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "trainer/corpora/corpus_files.h"
#include "trainer/corpora/json_corpus.h"
#include "trainer/corpora/owt_corpus.h"
#include "trainer/corpora/packed_file.h"
#include "trainer/corpora/python_text.h"
#include "trainer/corpora/standin_corpora.h"
#include "trainer/corpora/text_corpus.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<fs::path>;

// The documents of all shards, one shard after another.
class AllShards : public DocumentSource {
 public:
  explicit AllShards(ShardList shards) : shards_(std::move(shards)) {}
  bool Next(std::string* document) override {
    while (true) {
      if (source_ == nullptr) {
        Shard shard;
        if (!shards_(&shard)) return false;
        source_ = shard.open();
      }
      if (source_->Next(document)) return true;
      skipped_.Add(source_->skipped());
      bytes_ += source_->input_bytes();
      source_.reset();
    }
  }
  int64_t input_bytes() const override {
    return bytes_ + (source_ == nullptr ? 0 : source_->input_bytes());
  }
  Skipped skipped() const override {
    Skipped skipped = skipped_;
    if (source_ != nullptr) skipped.Add(source_->skipped());
    return skipped;
  }

 private:
  ShardList shards_;
  std::unique_ptr<DocumentSource> source_;
  int64_t bytes_ = 0;  // of the sources before
};

class Normalised : public DocumentSource {
 public:
  explicit Normalised(std::unique_ptr<DocumentSource> source)
      : source_(std::move(source)) {}
  bool Next(std::string* document) override {
    while (source_->Next(document)) {
      *document = NormaliseAsHuggingFace(*document);
      if (!document->empty()) return true;
      ++emptied_;
    }
    return false;
  }
  int64_t input_bytes() const override { return source_->input_bytes(); }
  std::string sha256() override { return source_->sha256(); }
  Skipped skipped() const override {
    Skipped skipped = source_->skipped();
    skipped.empty += emptied_;
    return skipped;
  }

 private:
  std::unique_ptr<DocumentSource> source_;
  int64_t emptied_ = 0;
};

// Normalises what the shards of `list` hold, if asked to.
ShardList Prepared(ShardList list, Normalise normalise) {
  if (normalise == Normalise::kNone) return list;
  return [list = std::move(list)](Shard* shard) {
    if (!list(shard)) return false;
    shard->open = [open = std::move(shard->open)] {
      return std::make_unique<Normalised>(open());
    };
    return true;
  };
}

// Lists `shards` in order.
ShardList ListOf(std::vector<Shard> shards) {
  return [shards = std::move(shards), next = size_t{0}](Shard* shard) mutable {
    if (next == shards.size()) return false;
    *shard = shards[next++];
    return true;
  };
}

std::string KeyOf(const std::vector<DigestedFile>& files) {
  std::string digests;
  for (const DigestedFile& file : files) digests += file.digest + "\n";
  return Sha256Hex(digests);
}

ShardList FileShards(FilesOf form, const std::vector<DigestedFile>& files,
                     const ReadOptions& options) {
  if (form == FilesOf::kOwt) return OwtShards(files, options);
  std::vector<Shard> shards;
  for (const DigestedFile& file : files) {
    shards.push_back({.name = file.path.filename().string(),
                      .bytes = file.bytes,
                      .digest = file.digest,
                      .open = [path = file.path, options] {
                        return OpenJsonLines(path, options);
                      }});
  }
  return ListOf(std::move(shards));
}

// Whether `place` holds Hugging Face's OpenWebText, turned into JSON lines.
bool IsJsonForm(const fs::path& place) {
  std::error_code error;
  if (fs::is_directory(place, error)) {
    return !HasFiles(FilesOf::kOwt, place) && HasFiles(FilesOf::kJson, place);
  }
  if (!fs::is_regular_file(place, error)) return false;
  const InputFile file(place);
  char first = 0;  // a tar begins with the name of a member
  return PackedFile(file).Read(&first, 1) == 1 && first == '{';
}

Corpus CorpusOfFiles(const std::string& name, const std::string& title,
                     FilesOf kind, const fs::path& place,
                     const CorpusOptions& options) {
  FilesOf form = kind;
  if (kind == FilesOf::kOwt && IsJsonForm(place)) {
    if (options.normalise != Normalise::kHfOpenWebText) {
      throw ConfigError(fmt::format(
          "{}: OpenWebText in JSON lines is Hugging Face's text, whose line "
          "ends, empty lines and ends are normalised; set data.normalise = "
          "\"hf_openwebtext\", which gives the same text from all forms, or "
          "read the files as jsonl:PATH",
          place.string()));
    }
    form = FilesOf::kJson;
  }
  const Files paths = FindCorpusFiles(form, place);
  const std::vector<DigestedFile> files = DigestFiles(form, paths);
  const std::string extent = CompareWithPublishers(kind, files);
  Corpus corpus;
  corpus.name = name;
  corpus.description =
      kind == FilesOf::kJson
          ? fmt::format("{}, in {} files of JSON lines", title, files.size())
          : fmt::format("{}, from {} of its publishers' files", title,
                        files.size());
  corpus.provenance =
      fmt::format("{}{}{}", paths.front().string(),
                  paths.size() == 1 ? "" : " .. " + paths.back().string(),
                  extent.empty() ? "" : ": " + extent);
  corpus.key = KeyOf(files);
  const std::string& text_key = options.read.text_key;
  const bool published = kind != FilesOf::kJson;
  const std::string publisher = published ? Published(kind).name : "";
  corpus.kind = published ? publisher : "jsonl";
  if (form != FilesOf::kOwt) corpus.kind += " " + text_key;
  corpus.current_key = [=] { return KeyOf(DigestFiles(form, paths)); };
  for (const DigestedFile& file : files) corpus.bytes += file.bytes;
  // An archive of OpenWebText has some 20,000 members; an empty one is read
  // too, and then named as cut off.
  corpus.parallel_shards = form == FilesOf::kOwt
                               ? std::max<int64_t>(1, corpus.bytes)
                               : static_cast<int64_t>(files.size());
  corpus.shards = [=, read = options.read, normalise = options.normalise] {
    return Prepared(FileShards(form, files, read), normalise);
  };
  if (published) {
    // The publishers' counts are of the documents under the default text_key.
    const bool other =
        form != FilesOf::kOwt && text_key != ReadOptions().text_key;
    const std::string what =
        other ? fmt::format("not {}: its \"{}\"", publisher, text_key) : "";
    corpus.text_of = [=](int64_t documents, int64_t bad) {
      return what.empty() ? TextOf(kind, documents, bad) : what;
    };
  }
  corpus.verify = [=] { return VerifyFiles(kind, paths); };
  return corpus;
}

// A corpus of one text file.
Corpus TextCorpus(const std::string& name, const std::string& kind,
                  const fs::path& path, const std::string& hash,
                  Normalise normalise) {
  Corpus corpus;
  corpus.name = name;
  corpus.key = hash;
  corpus.kind = kind;
  corpus.current_key = [=] { return Sha256OfFile(path); };
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (!error) corpus.bytes = static_cast<int64_t>(bytes);
  corpus.shards = [=, bytes = corpus.bytes] {
    return Prepared(ListOf({{.name = path.filename().string(),
                             .bytes = bytes,
                             .digest = hash,
                             .sha256 = hash,
                             .open = [=] { return OpenTextFile(path); }}}),
                    normalise);
  };
  corpus.verify = [] { return "no published checksum of this text is known"; };
  return corpus;
}

struct Parsed {
  std::string kind;  // before the colon
  bool has_path = false;
  fs::path path;  // of the text
};

Parsed Parse(const std::string& name, const fs::path& cache,
             const CorpusPlaces& places) {
  const size_t colon = name.find(':');
  Parsed parsed;
  parsed.kind = name.substr(0, colon);
  parsed.has_path = colon != std::string::npos && colon + 1 < name.size();
  const auto place = places.find(name);
  if (parsed.has_path) {
    parsed.path = UserPath(name.substr(colon + 1));
  } else if (place != places.end()) {
    parsed.path = place->second;
  } else {
    parsed.path = cache / "corpora" / parsed.kind;
  }
  return parsed;
}

// The files of the corpus; none if they are not what FindCorpus takes, which
// then says why.
Files FilesOfCorpus(const std::string& kind, const fs::path& place) {
  std::error_code error;
  try {
    if (kind == "owt") {
      return FindCorpusFiles(IsJsonForm(place) ? FilesOf::kJson : FilesOf::kOwt,
                             place);
    }
    if (kind == "c4") return FindCorpusFiles(FilesOf::kC4, place);
    if (kind == "jsonl") return FindCorpusFiles(FilesOf::kJson, place);
  } catch (const Error&) {
    return {};
  }
  return {fs::is_directory(place, error) ? place / kStandinTextName : place};
}

// The bytes of all files; those that vanish count as 0.
int64_t BytesOf(const Files& files) {
  int64_t sum = 0;
  for (const fs::path& file : files) {
    std::error_code gone;
    const auto bytes = fs::file_size(file, gone);
    if (!gone) sum += static_cast<int64_t>(bytes);
  }
  return sum;
}

// Whether the files are plain, judging by the first one.
bool IsPlain(const Files& files) {
  try {
    return !files.empty() &&
           FormOf(InputFile(files.front())) == FileForm::kPlain;
  } catch (const Error&) {
    return false;
  }
}

// Estimates text and documents from `files`, those that are here.
void EstimateText(const std::string& kind, const Files& files,
                  CorpusSize* size) {
  if (size->bytes > 0 && (!size->here || IsPlain(files))) {
    size->text_bytes = size->bytes;
  }
  if (kind != "owt" && kind != "c4") return;
  const PublishedCorpus all =
      Published(kind == "owt" ? FilesOf::kOwt : FilesOf::kC4);
  double share = 1;
  if (size->here) {
    share = std::min(1.0, size->text_bytes > 0
                              ? static_cast<double>(size->text_bytes) /
                                    static_cast<double>(all.text_bytes)
                              : static_cast<double>(size->bytes) /
                                    static_cast<double>(all.file_bytes));
  }
  const auto part = [share](int64_t whole) {
    return static_cast<int64_t>(share * static_cast<double>(whole));
  };
  size->text_bytes = part(all.text_bytes);
  size->documents = part(all.documents);
}

[[noreturn]] void RefuseUnknown(const std::string& name) {
  std::string known;
  for (const StandinCorpus& corpus : StandinCorpora()) {
    known += corpus.name + ", ";
  }
  throw ConfigError(
      fmt::format("data.corpus = \"{}\": no such corpus; choose one of {}owt, "
                  "c4, owt:PATH, c4:PATH, jsonl:PATH or path:FILE",
                  name, known));
}

Corpus Find(const std::string& name, const CorpusOptions& options) {
  const auto [kind, has_path, path] =
      Parse(name, options.cache, options.places);
  if (!has_path && kind.size() < name.size()) RefuseUnknown(name);
  if (kind == "owt") {
    return CorpusOfFiles(name, "OpenWebText", FilesOf::kOwt, path, options);
  }
  if (kind == "c4") {
    return CorpusOfFiles(name, "C4", FilesOf::kC4, path, options);
  }
  if (kind == "jsonl" && has_path) {
    return CorpusOfFiles(name, "documents of the user's", FilesOf::kJson, path,
                         options);
  }
  if (kind == "path" && has_path) {
    RequireRegular(path);
    const std::string hash = Sha256OfFile(path);
    Corpus corpus = TextCorpus(name, kind, path, hash, options.normalise);
    corpus.description = "a text file of the user's, " + path.string();
    corpus.provenance = fmt::format("{} (SHA-256 {})", path.string(), hash);
    return corpus;
  }
  const StandinCorpus* standin = has_path ? nullptr : FindStandin(name);
  if (standin == nullptr) RefuseUnknown(name);
  const StandinText text =
      EnsureStandin(*standin, options.cache, options.notify);
  Corpus corpus =
      TextCorpus(name, name, text.text, text.sha256, options.normalise);
  corpus.description = standin->description;
  corpus.stand_in = true;
  corpus.provenance = text.provenance;
  return corpus;
}

}  // namespace

void Skipped::Add(const Skipped& later) {
  empty += later.empty;
  bad += later.bad;
  for (const std::string& one : later.first) {
    if (first.size() < kNamed) first.push_back(one);
  }
}

void DocumentSource::SkipOrThrow(OnBad on_bad, const std::string& what) {
  if (on_bad == OnBad::kFail) {
    throw DataError(what +
                    "; correct it, or download this file again and compare its "
                    "checksum, or leave such documents out with "
                    "`//:prepare_data --on-bad=skip`");
  }
  skipped_.Add({.bad = 1, .first = {what}});
}

CorpusPlaces PlacesOf(const RuntimeConfig& runtime) {
  CorpusPlaces places;
  if (!runtime.place_owt.empty()) places["owt"] = UserPath(runtime.place_owt);
  if (!runtime.place_c4.empty()) places["c4"] = UserPath(runtime.place_c4);
  return places;
}

Corpus FindCorpus(const std::string& name, const CorpusOptions& options) {
  Corpus corpus = Find(name, options);
  corpus.open = [shards = corpus.shards] {
    return std::make_unique<AllShards>(shards());
  };
  return corpus;
}

std::string NormaliseAsHuggingFace(std::string_view text) {
  std::string result;
  int64_t line_ends = 0;  // in a row
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "\r\n") continue;
    const char byte = text[i] == '\r' ? '\n' : text[i];
    line_ends = byte == '\n' ? line_ends + 1 : 0;
    if (line_ends <= 2) result += byte;
  }
  return std::string(Strip(result));
}

CorpusSize SizeOfCorpus(const std::string& name, const fs::path& cache,
                        const CorpusPlaces& places) {
  const Parsed parsed = Parse(name, cache, places);
  CorpusSize size;
  size.place = parsed.path;
  std::error_code error;
  size.here = fs::exists(parsed.path, error);
  Files files;
  if (size.here) {
    files = FilesOfCorpus(parsed.kind, parsed.path);
    size.bytes = BytesOf(files);
  } else if (const StandinCorpus* standin = FindStandin(name)) {
    size.bytes = standin->text_bytes;
  }
  EstimateText(parsed.kind, files, &size);
  return size;
}

}  // namespace softmoe::trainer
