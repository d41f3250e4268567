// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/config/config_enums.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/files/temporary_folder.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "core/stoppable_output.h"
#include "core/text/progress.h"
#include "core/text/text_table.h"
#include "trainer/corpora/corpus.h"
#include "trainer/tokens/manifest.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/shard_store.h"
#include "trainer/tokens/shard_workers.h"
#include "trainer/tokens/token_disk.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/token_memory.h"
#include "trainer/tokens/tokenizer.h"
#include "trainer/tokens/tokenizer_sample.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// Must be increased when the same corpus and options give other token files.
constexpr int kPreparationVersion = 6;

// Documents are encoded in batches of this size; no result depends on it.
constexpr int64_t kBatchBytes = 1 << 20;

// Files of at least this size are announced before they are read whole.
constexpr int64_t kNotedBytes = 4'000'000'000;

constexpr const char* kStopped =
    "no token files have been written yet; the same command continues, and "
    "keeps the finished shards";

// Passes on whole documents as long as they fit into `max_bytes` together.
class FirstBytes : public DocumentSource {
 public:
  FirstBytes(std::unique_ptr<DocumentSource> source, int64_t max_bytes)
      : source_(std::move(source)), left_(max_bytes) {}
  bool Next(std::string* document) override {
    if (left_ <= 0 || !source_->Next(document)) return false;
    left_ -= static_cast<int64_t>(document->size());
    return left_ >= 0;
  }
  int64_t input_bytes() const override { return source_->input_bytes(); }
  Skipped skipped() const override { return source_->skipped(); }

 private:
  std::unique_ptr<DocumentSource> source_;
  int64_t left_;
};

// The next documents of about kBatchBytes together; none at the end.
Strings ReadBatch(DocumentSource& source) {
  Strings batch;
  int64_t bytes = 0;
  for (std::string document; bytes < kBatchBytes && source.Next(&document);) {
    bytes += static_cast<int64_t>(document.size());
    batch.push_back(std::move(document));
  }
  return batch;
}

// Encodes batches of documents with several threads.
class BatchEncoder {
 public:
  using Ids = std::vector<int32_t>;

  BatchEncoder(const Tokenizer& tokenizer, int threads) : pool_(threads) {
    for (int i = 0; i < threads; ++i) encoders_.emplace_back(tokenizer);
  }
  bool parallel() const { return encoders_.size() > 1; }

  std::vector<Ids> Encode(const Strings& batch) {
    std::vector<Ids> ids(batch.size());
    const size_t parts = encoders_.size();
    pool_.ParallelFor(static_cast<int64_t>(parts), [&](int64_t part) {
      const auto p = static_cast<size_t>(part);
      for (size_t d = batch.size() * p / parts;
           d < batch.size() * (p + 1) / parts; ++d) {
        encoders_[p].Encode(batch[d], &ids[d]);
      }
    });
    return ids;
  }

 private:
  ThreadPool pool_;
  std::vector<WordEncoder> encoders_;  // each for one part
};

// Encodes shards into a store.
class ShardEncoder {
 public:
  // `with_bad`: shards without their bad documents count as encoded.
  ShardEncoder(ShardStore* store, bool with_bad, const Tokenizer& tokenizer,
               int threads)
      : store_(*store),
        with_bad_(with_bad),
        tokenizer_(tokenizer),
        encoder_(std::make_shared<BatchEncoder>(tokenizer, threads)) {}

  bool operator()(const Shard& shard, int64_t index, const GoOn& go_on) const {
    if (store_.Has(index, shard.digest, with_bad_)) return true;
    const auto source = shard.open();
    ShardWriter writer(store_.folder(), index, tokenizer_.vocab_size());
    bool wanted = true;
    const auto read = [&] {
      Strings batch = ReadBatch(*source);
      wanted = go_on(source->input_bytes());
      return batch;
    };
    // If several threads encode, the next batch is read in the meantime.
    Strings batch = read();
    while (!batch.empty() && wanted) {
      std::future<Strings> next = std::async(
          encoder_->parallel() ? std::launch::async : std::launch::deferred,
          read);
      std::vector<BatchEncoder::Ids> ids = encoder_->Encode(batch);
      for (size_t d = 0; d < batch.size(); ++d) {
        ids[d].push_back(tokenizer_.end_of_document());
        writer.AddDocument(batch[d], ids[d]);
      }
      batch = next.get();
    }
    if (!wanted) return false;
    ShardRecord about;
    about.name = shard.name;
    about.digest = shard.digest;
    about.sha256 = shard.sha256.empty() ? source->sha256() : shard.sha256;
    about.bytes = shard.bytes;
    const Skipped skipped = source->skipped();
    about.empty = skipped.empty;
    about.bad = skipped.bad;
    about.first = skipped.first;
    writer.Commit(about);
    return true;
  }

 private:
  ShardStore& store_;
  bool with_bad_;
  const Tokenizer& tokenizer_;
  std::shared_ptr<BatchEncoder> encoder_;
};

class Preparation {
 public:
  Preparation(const DataConfig& data, int64_t vocab_size,
              const PrepareOptions& options)
      : data_(data),
        vocab_size_(vocab_size),
        options_(options),
        cache_(options.cache.empty() ? CacheFolder() : options.cache) {}

  PreparedCorpus Run() {
    if (options_.tokenizer.empty()) {
      RequireVocabSize(vocab_size_);
    } else {
      ReadTokenizer();
    }
    NoteHashing("looking at the files of the corpus",
                SizeOfCorpus(data_.corpus, cache_, options_.places).bytes);
    Find();
    if (options_.verify) {
      NoteReading("comparing them with the publishers' hashes", corpus_.bytes);
      Note(corpus_.verify());
    }
    // Removes leftovers of killed processes, whatever they prepared: these may
    // be as large as the tokens of OpenWebText.
    RemoveLeftoverFolders(cache_ / "tokens");
    const fs::path folder = cache_ / "tokens" / Key(corpus_.key);
    PreparedCorpus cached;
    if (FindCached(folder / "tokens", &cached)) return cached;
    if (options_.only_find) {
      RefuseToPrepare(data_, vocab_size_, options_.places);
    }

    // The folder is named after the corpus, not after the key of its text, so
    // that replacing a damaged file does not void the work on the others.
    const fs::path work = cache_ / "tokens" / (Key(corpus_.name) + ".work");
    const auto lock = Lock(work);
    if (FindCached(folder / "tokens", &cached)) {
      RemoveFolder(work);
      return cached;
    }
    keeps_work_ = fs::exists(work / "model.json");
    try {
      Prepare(work);
      if (!Place(work / "done", folder, &cached)) {
        RemoveFolder(work);
        return cached;
      }
    } catch (...) {
      if (!keeps_work_) RemoveFolder(work);
      throw;
    }
    RemoveFolder(work);
    // Does not hash again what was hashed when it was written.
    return ReadPreparedCorpus(folder / "tokens");
  }

 private:
  struct Kept {
    int64_t shards = 0, bytes = 0;  // that were done before
  };

  void Find() {
    try {
      corpus_ =
          FindCorpus(data_.corpus, {.cache = cache_,
                                    .places = options_.places,
                                    .read = options_.read,
                                    .normalise = data_.normalise,
                                    .notify = [this](const std::string& line) {
                                      stop_.ThrowIfRequested(kStopped);
                                      Note(line);
                                    }});
    } catch (const EnvironmentError&) {
      // Ctrl-C also ends the programs that get packages and unpack them.
      stop_.ThrowIfRequested(kStopped);
      throw;
    }
  }

  static void RemoveFolder(const fs::path& folder) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  void Note(const std::string& line) {
    if (options_.notify) {
      options_.notify(line);
    } else if (!options_.quiet) {
      PrintUnlessStopped(stderr, "prepare: " + line + "\n");
    }
  }

  void NoteReading(const char* what, int64_t bytes) {
    if (bytes < kNotedBytes) return;
    Note(fmt::format("{}: {}", what, FormatBytes(bytes)));
  }

  void NoteReading(const char* what, const fs::path& file) {
    std::error_code absent;
    const auto bytes = fs::file_size(file, absent);
    if (!absent) NoteReading(what, static_cast<int64_t>(bytes));
  }

  // Hashing C4 reads only samples of its shards.
  void NoteHashing(const char* what, int64_t bytes) {
    if (!data_.corpus.starts_with("c4")) NoteReading(what, bytes);
  }

  void ReadTokenizer() {
    const std::string name = options_.tokenizer.string();
    given_model_ = ReadWholeFile(options_.tokenizer);
    try {
      CheckTokenizerModel(given_model_, name);
    } catch (const DataError& error) {
      throw DataError(
          fmt::format("--tokenizer: give the PREFIX.model of token files: {}",
                      error.what()));
    }
    const int64_t pieces = Tokenizer(given_model_, name).vocab_size();
    if (vocab_size_ == 0) vocab_size_ = pieces;
    if (pieces == vocab_size_) return;
    throw ConfigError(
        fmt::format("{}: a tokenizer of {} pieces, not of {}; leave "
                    "--vocab-size out, or set it to {}",
                    name, pieces, vocab_size_, pieces));
  }

  // Everything that the token files depend on, besides the text.
  std::string Key(const std::string& text) const {
    return Sha256Hex(
               fmt::format(
                   "{}\n{}\n{}\n{}\n{}\n{}{}", kPreparationVersion,
                   corpus_.kind, text, vocab_size_, data_.max_bytes,
                   data_.normalise == Normalise::kNone ? "" : "normalised\n",
                   given_model_.empty() ? "" : Sha256Hex(given_model_)))
        .substr(0, 32);
  }

  bool FindCached(const fs::path& prefix, PreparedCorpus* found) {
    if (!fs::exists(WithSuffix(prefix, ".json"))) return false;
    if (!RecallTokens(prefix)) {
      NoteReading("checking token files", WithSuffix(prefix, ".bin"));
    }
    try {
      *found = OpenPreparedCorpus(prefix, vocab_size_);
      NoteLeftOut(prefix);
    } catch (const StoppedError&) {
      throw;
    } catch (const Error& error) {
      Note(fmt::format("making it again: {}", error.what()));
      return false;
    }
    found->corpus = data_.corpus;  // the text may have been found elsewhere
    found->from_cache = true;
    return true;
  }

  void NoteLeftOut(const fs::path& prefix) {
    const int64_t bad =
        Total(ReadManifest(WithSuffix(prefix, ".manifest")).shards).bad;
    if (bad == 0 || options_.read.on_bad == OnBad::kSkip) return;
    Note(fmt::format(
        "found tokens prepared with --on-bad=skip: {} bad documents were left "
        "out; to have such documents refused, delete {}.*",
        bad, prefix.string()));
  }

  // Lets one process at a time work in the folder, which the process before it
  // may have removed when it ended.
  std::unique_ptr<FolderLock> Lock(const fs::path& work) {
    bool said = false;
    for (int failures = 0;;) {
      MakeFolder(work);
      try {
        auto lock = WaitForFolder(work, [&](const LockHolder& holder) {
          stop_.ThrowIfRequested(kStopped);
          if (!std::exchange(said, true)) {
            Note(fmt::format("waiting for {}, which prepares the same corpus",
                             Describe(holder)));
          }
        });
        if (fs::exists(work)) return lock;
        failures = 0;
      } catch (const EnvironmentError&) {
        // The folder may have been removed, and then made by a third process.
        if (fs::exists(work) && ++failures == 3) throw;
      }
    }
  }

  // Renames `done` to `folder`. Returns false if a process that knows the text
  // by another name put it there first; others may already use that copy.
  bool Place(const fs::path& done, const fs::path& folder,
             PreparedCorpus* cached) {
    const fs::path guard = folder.string() + ".lock";
    const auto lock = Lock(guard);
    std::error_code error;
    const bool there = FindCached(folder / "tokens", cached);
    if (!there) {
      fs::remove_all(folder, error);  // a damaged one
      fs::rename(done, folder, error);
    }
    RemoveFolder(guard);
    if (error) throw FileError("write", folder, error.value());
    return !there;
  }

  void Prepare(const fs::path& work) {
    Note(fmt::format("{}: {}", corpus_.name, corpus_.description));
    const fs::path prefix = work / "done" / "tokens";
    // A lower estimate, before part of the corpus is read for a better one.
    const auto expected =
        ExpectedDisk(data_, vocab_size_,
                     SizeOfCorpus(data_.corpus, cache_, options_.places));
    if (expected && !expected->at_most) {
      RequireDisk(work, expected->tokens + expected->index);
    }
    const SampledTokenizer first = MakeTokenizer(work);
    CheckDisk(first, work);
    const Tokenizer tokenizer(first.model,
                              WithSuffix(prefix, ".model").string());
    // If a process ended after the last shard, all its tokens are kept.
    std::error_code ignored;
    fs::rename(WithSuffix(prefix, ".bin"), work / "tokens.bin", ignored);
    RemoveFolder(work / "done");
    MakeFolder(work / "done");
    WriteFileAtomically(WithSuffix(prefix, ".model"), first.model);
    PreparedCorpus result;
    result.prefix = prefix;
    result.corpus = corpus_.name;
    result.description = corpus_.description;
    result.stand_in = corpus_.stand_in;
    result.provenance = corpus_.provenance;
    result.vocab_size = vocab_size_;
    result.max_bytes = data_.max_bytes;
    result.normalise = data_.normalise;
    result.tokens.tokenizer_sha256 = Sha256Hex(first.model);
    Encode(tokenizer, work, &result);
    WritePreparedCorpus(result);
  }

  // The shards of the part of the corpus that is used.
  ShardList Shards() const {
    if (data_.max_bytes == 0) return corpus_.shards();
    const auto begin = [this] {
      return std::make_unique<FirstBytes>(corpus_.open(), data_.max_bytes);
    };
    return [this, begin, given = false](Shard* shard) mutable {
      if (std::exchange(given, true)) return false;
      *shard = {
          .name = fmt::format("the first {} bytes of text", data_.max_bytes),
          .bytes = corpus_.bytes,
          .digest = corpus_.key,
          .open = begin};
      return true;
    };
  }

  // First pass: measures the text, and samples it to train the tokenizer on,
  // unless one is given. Reuses a model that was trained on the same shards.
  SampledTokenizer MakeTokenizer(const fs::path& work) {
    auto found = FindTokenizer(work, SampledShards(Shards()));
    if (found) return *found;
    keeps_work_ = false;
    RemoveFolder(work / "shards");  // of another tokenizer
    for (const char* name :
         {"tokens.bin", "lengths", "documents", "appended.jsonl"}) {
      fs::remove(work / name);
    }
    TokenizerSample sample(vocab_size_);
    const auto task = [&](const Shard& shard, int64_t index,
                          const GoOn& go_on) {
      return sample.Draw(shard, index, go_on);
    };
    {
      ShardWorkers workers(SampledShards(Shards()), 0, Workers(),
                           [&] { return task; });
      Follow(workers, "prepare: sampling, bytes of files",
             std::min(corpus_.bytes, kSampledFileBytes), {}, [] {});
    }
    if (sample.sampled().documents == 0) RefuseEmpty(sample.sampled().skipped);
    return sample.MakeTokenizer(
        given_model_, [this](const std::string& line) { Note(line); }, work);
  }

  // `skipped`: what the corpus holds instead of documents.
  [[noreturn]] void RefuseEmpty(const Skipped& skipped) const {
    std::string besides;
    if (skipped.bad + skipped.empty > 0) {
      besides = fmt::format(
          " besides {} bad and {} empty ones{}", skipped.bad, skipped.empty,
          skipped.first.empty() ? ""
                                : fmt::format(" ({})", skipped.first.front()));
    }
    if (data_.max_bytes != 0) {
      throw DataError(fmt::format(
          "corpus {}: no document{} fits into data.max_bytes = {}; raise it",
          corpus_.name, besides, data_.max_bytes));
    }
    throw DataError(fmt::format(
        "corpus {}: it holds no document{}; give a text with documents",
        corpus_.name,
        besides.empty() ? ", at most document separators" : besides));
  }

  // Requires disk for the whole corpus, estimated from the sample's bytes of
  // text per byte of files, and bytes of text per token.
  void CheckDisk(const SampledTokenizer& first, const fs::path& work) const {
    const SampledText& sampled = first.sampled;
    const double share = static_cast<double>(corpus_.bytes) /
                         static_cast<double>(std::max<int64_t>(
                             1, std::min(corpus_.bytes, sampled.input_bytes)));
    const auto whole = [&](int64_t part) {
      return static_cast<int64_t>(static_cast<double>(part) * share);
    };
    int64_t text_bytes = whole(sampled.text_bytes);
    if (data_.max_bytes != 0) {
      text_bytes = std::min(text_bytes, data_.max_bytes);
    }
    RequireDisk(work, DiskForTokens(text_bytes, first.bytes_per_token,
                                    whole(sampled.documents), vocab_size_)
                          .total());
  }

  // Throws EnvironmentError unless `needed` bytes are free, counting those that
  // the work already takes.
  void RequireDisk(const fs::path& work, int64_t needed) const {
    for (const auto& file : fs::recursive_directory_iterator(work)) {
      if (file.is_regular_file()) {
        needed -= static_cast<int64_t>(file.file_size());
      }
    }
    const int64_t there = FreeDiskBytes(cache_);
    if (there >= needed) return;
    throw EnvironmentError(fmt::format(
        "{}: {} MB free, but preparing corpus {} takes about {} MB; free some, "
        "set XDG_CACHE_HOME to a folder on a larger disk, or use less of the "
        "corpus (data.max_bytes)",
        cache_.string(), there / 1000000, corpus_.name, needed / 1000000));
  }

  // Second pass: tokens.
  void Encode(const Tokenizer& tokenizer, const fs::path& work,
              PreparedCorpus* result) {
    // Keeps finished shards that are still the first of the corpus and lack no
    // document that must be refused.
    const bool with_bad = options_.read.on_bad == OnBad::kSkip;
    ShardList shards = Shards();
    Shard taken;  // the last one from the list
    int64_t num_taken = 0;
    NoteReading("checking the tokens of finished shards", work / "tokens.bin");
    ShardStore store(work, vocab_size_, [&](const ShardRecord& record) {
      stop_.ThrowIfRequested(kStopped);
      if (!shards(&taken)) return false;
      ++num_taken;
      return taken.digest == record.digest && (with_bad || record.bad == 0);
    });
    Kept kept;
    for (const ShardRecord& shard : store.appended()) {
      ++kept.shards;
      kept.bytes += shard.bytes;
    }
    if (kept.shards > 0) {
      Note(fmt::format("continuing after {} finished shards", kept.shards));
    }
    if (num_taken > kept.shards) {
      shards = Before(std::move(taken), std::move(shards));
    }
    const int workers = Workers();
    const int threads_each = Threads() / workers;
    try {
      ShardWorkers at_work(std::move(shards), kept.shards, workers, [&] {
        return ShardEncoder(&store, with_bad, tokenizer, threads_each);
      });
      Follow(at_work, "prepare: encoding, bytes of files", corpus_.bytes, kept,
             [&] { store.AppendNext(); });
    } catch (...) {
      // On a signal, too: the tokenizer may have taken minutes.
      keeps_work_ = keeps_work_ || store.HasWork() || stop_.requested();
      throw;
    }
    keeps_work_ = true;
    RequireUnchanged();
    const ShardStore::Result made = store.Finish(result->prefix);
    FillIn(made, result);
  }

  // `shard`, then those of `others`.
  static ShardList Before(Shard shard, ShardList others) {
    return [first = std::optional(std::move(shard)),
            others = std::move(others)](Shard* next) mutable {
      if (!first) return others(next);
      *next = *std::exchange(first, std::nullopt);
      return true;
    };
  }

  // Otherwise the cache would hold the tokens of one text under the name of
  // another.
  void RequireUnchanged() {
    NoteHashing("checking that the files have not changed", corpus_.bytes);
    if (corpus_.current_key() == corpus_.key) return;
    keeps_work_ = false;
    throw DataError(fmt::format(
        "corpus {}: its text changed while it was read; nothing was kept. Run "
        "the same command again once nothing writes there any more",
        corpus_.name));
  }

  void FillIn(const ShardStore::Result& made, PreparedCorpus* result) const {
    const ShardRecord total = Total(made.manifest.shards);
    result->text_bytes = total.text_bytes;
    result->num_documents = total.documents;
    result->num_tokens = total.tokens;
    result->corpus_sha256 = total.text_sha256;
    result->tokens.data_sha256 = made.tokens_sha256;
    result->tokens.index_sha256 = made.index_sha256;
    result->text_of = corpus_.text_of(total.documents + total.empty, total.bad);
    if (total.bad > 0) {
      result->provenance += fmt::format(
          "; {} bad documents were left out: {}{}", total.bad,
          fmt::join(total.first, "; "),
          total.bad > static_cast<int64_t>(total.first.size()) ? "; ..." : "");
    }
  }

  int Threads() const {
    return options_.threads == 0 ? AvailableCores()
                                 : static_cast<int>(options_.threads);
  }

  // How many threads work on shards of their own.
  int Workers() const {
    if (data_.max_bytes != 0) return 1;
    return static_cast<int>(
        std::min<int64_t>(Threads(), corpus_.parallel_shards));
  }

  // Calls take() for each shard, in order, as soon as it is done, until there
  // are no more.
  void Follow(ShardWorkers& workers, const char* task, int64_t total_bytes,
              const Kept& kept, const std::function<void()>& take) {
    Progress progress(task, total_bytes, kept.bytes, Quiet());
    const double start = SteadySeconds();
    using State = ShardWorkers::State;
    int64_t next = kept.shards, shown = -1;
    for (State state = State::kWaiting; state != State::kNoMore;) {
      stop_.ThrowIfRequested(kStopped);
      state = workers.WaitFor(next);
      if (state == State::kDone) {
        take();
        ++next;
      }
      const int64_t read = workers.input_bytes();
      if (std::exchange(shown, read) == read) continue;
      progress.Update(std::min(total_bytes, kept.bytes + read),
                      fmt::format("{:.1f} MB/s",
                                  static_cast<double>(read) * 1e-6 /
                                      std::max(1e-3, SteadySeconds() - start)));
    }
  }

  ProgressOptions Quiet() const {
    ProgressOptions options;
    options.quiet = options_.quiet;
    return options;
  }

  DataConfig data_;
  int64_t vocab_size_;
  PrepareOptions options_;
  fs::path cache_;
  std::string given_model_;  // the file of options_.tokenizer, or ""
  StopSignal stop_;
  Corpus corpus_;
  // Whether the work folder has anything from which the same command goes on.
  bool keeps_work_ = false;
};

}  // namespace

void RefuseToPrepare(const DataConfig& data, int64_t vocab_size,
                     const CorpusPlaces& places) {
  std::string command =
      fmt::format("./bazelw run //:prepare_data -- --corpus {}", data.corpus);
  if (const auto place = places.find(data.corpus); place != places.end()) {
    command +=
        fmt::format(" --place {}={}", data.corpus, place->second.string());
  }
  command += fmt::format(" --vocab-size {}", vocab_size);
  if (data.normalise != Normalise::kNone) {
    command += fmt::format(" --normalise {}", EnumName(data.normalise));
  }
  if (data.max_bytes != 0) {
    command += fmt::format(" --max-bytes {}", data.max_bytes);
  }
  throw EnvironmentError(
      fmt::format("{} is not prepared; prepare it first, where no GPU has to "
                  "wait for it: `{}`",
                  data.corpus, command));
}

PreparedCorpus PrepareCorpus(const DataConfig& data, int64_t vocab_size,
                             const PrepareOptions& options) {
  return Preparation(data, vocab_size, options).Run();
}

}  // namespace softmoe::trainer
