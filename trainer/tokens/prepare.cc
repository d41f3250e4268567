// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/prepare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <future>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/folder_lock.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/files/temporary_folder.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "core/text/progress.h"
#include "trainer/corpora/document_sample.h"
#include "trainer/tokens/shard_store.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// Increased when the same corpus and options would give other token files.
constexpr int kPreparationVersion = 1;

// The tokenizer's sample is drawn from this much of the corpus: reading all of
// C4 twice would not improve it.
constexpr int64_t kSampledBytes = 8'000'000'000;

// Documents are encoded in batches of this size; no result depends on it.
constexpr int64_t kBatchBytes = 1 << 20;

constexpr const char* kStopped =
    "no token files were written yet; the same command goes on, and keeps the "
    "shards that were finished";

// Passes on whole documents as long as they fit into `max_bytes` together.
class FirstBytes : public DocumentSource {
 public:
  FirstBytes(std::unique_ptr<DocumentSource> source, int64_t max_bytes)
      : source_(std::move(source)), left_(max_bytes) {}
  bool Next(std::string* document) override {
    const bool more = source_->Next(document);
    skipped_ = source_->skipped();
    if (!more) return false;
    left_ -= static_cast<int64_t>(document->size());
    return left_ >= 0;
  }
  int64_t input_bytes() const override { return source_->input_bytes(); }

 private:
  std::unique_ptr<DocumentSource> source_;
  int64_t left_;
};

// Of the first megabyte or so of these documents.
double BytesPerToken(const Tokenizer& tokenizer, const Strings& documents) {
  int64_t bytes = 0, tokens = 0;
  for (const std::string& document : documents) {
    bytes += static_cast<int64_t>(document.size());
    tokens += static_cast<int64_t>(tokenizer.Encode(document).size());
    if (bytes > kBatchBytes) break;
  }
  return static_cast<double>(bytes) /
         static_cast<double>(std::max<int64_t>(1, tokens));
}

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

// Encodes the shards of a list into a store, several at a time.
class ShardWorkers {
 public:
  ShardWorkers(ShardList shards, ShardStore* store, const Tokenizer& tokenizer,
               int64_t vocab_size)
      : shards_(std::move(shards)),
        store_(*store),
        tokenizer_(tokenizer),
        vocab_size_(vocab_size),
        next_(static_cast<int64_t>(store->appended().size())) {}
  ~ShardWorkers() { Stop(); }

  void Start(int workers, int threads_each) {
    running_ = workers;  // before one of them may end
    for (int i = 0; i < workers; ++i) {
      threads_.emplace_back([this, threads_each] { Work(threads_each); });
    }
  }
  // They end as soon as they can; what they are at is lost.
  void Stop() {
    last_ = -1;
    threads_.clear();  // joins
  }

  // Waits until shard `index` is in the store, at most 0.1 s.
  enum class State { kWaiting, kDone, kNoMore };
  State WaitFor(int64_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(100),
                      [&] { return done_.contains(index) || running_ == 0; });
    if (done_.erase(index) > 0) return State::kDone;
    if (running_ > 0) return State::kWaiting;
    if (failure_) std::rethrow_exception(failure_);
    return State::kNoMore;
  }

  // Stored bytes of shards that were read so far.
  int64_t input_bytes() const { return input_bytes_; }

 private:
  void Work(int threads) {
    BatchEncoder encoder(tokenizer_, threads);
    int64_t index = 0;
    try {
      for (Shard shard; Take(&shard, &index);) {
        if (!store_.Has(index, shard.digest)) {
          if (!EncodeShard(shard, index, encoder)) break;
        } else {
          input_bytes_ += shard.bytes;
        }
        shard = {};  // a member is in memory
        const std::lock_guard lock(mutex_);
        done_.insert(index);
        changed_.notify_all();
      }
    } catch (...) {
      Fail(index);
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  bool Take(Shard* shard, int64_t* index) {
    const std::lock_guard lock(take_mutex_);
    *index = next_;
    if (next_ > last_ || !shards_(shard)) return false;
    ++next_;
    return true;
  }

  // The failure of the first shard that fails is reported, whichever thread is
  // faster: those before it go on.
  void Fail(int64_t index) {
    const std::lock_guard lock(mutex_);
    if (failure_ && index > failed_) return;
    failure_ = std::current_exception();
    failed_ = index;
    last_ = std::min<int64_t>(last_, index - 1);
  }

  // False if it was stopped.
  bool EncodeShard(const Shard& shard, int64_t index, BatchEncoder& encoder) {
    const auto source = shard.open();
    ShardWriter writer(store_.folder(), index, vocab_size_);
    int64_t counted = 0;
    const auto read = [&] {
      Strings batch = ReadBatch(*source);
      const int64_t bytes = std::min(source->input_bytes(), shard.bytes);
      input_bytes_ += bytes - std::exchange(counted, bytes);
      return batch;
    };
    // Where several threads encode, the next batch is read meanwhile.
    Strings batch = read();
    while (!batch.empty()) {
      if (index > last_) return false;
      std::future<Strings> next = std::async(
          encoder.parallel() ? std::launch::async : std::launch::deferred,
          read);
      std::vector<BatchEncoder::Ids> ids = encoder.Encode(batch);
      for (size_t d = 0; d < batch.size(); ++d) {
        ids[d].push_back(tokenizer_.end_of_document());
        writer.AddDocument(batch[d], ids[d]);
      }
      batch = next.get();
    }
    input_bytes_ += shard.bytes - counted;
    ShardRecord about;
    about.name = shard.name;
    about.digest = shard.digest;
    about.sha256 = shard.sha256.empty() ? source->sha256() : shard.sha256;
    about.bytes = shard.bytes;
    about.empty = source->skipped().empty;
    about.bad = source->skipped().bad;
    about.first = source->skipped().first;
    writer.Commit(about);
    return true;
  }

  ShardList shards_;
  ShardStore& store_;
  const Tokenizer& tokenizer_;
  int64_t vocab_size_;

  std::mutex take_mutex_;
  int64_t next_;
  // No shard behind this one is worked at.
  std::atomic<int64_t> last_ = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> input_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<int64_t> done_;  // in the store, not waited for yet
  int running_ = 0;
  std::exception_ptr failure_;
  int64_t failed_ = 0;
  std::vector<std::jthread> threads_;
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
    corpus_ =
        FindCorpus(data_.corpus, {.cache = cache_,
                                  .places = options_.places,
                                  .read = options_.read,
                                  .normalise = data_.normalise,
                                  .notify = [this](const std::string& line) {
                                    stop_.ThrowIfRequested(kStopped);
                                    Note(line);
                                  }});
    if (options_.verify) Note(corpus_.verify());
    // Removes leftovers of killed processes, whatever they prepared: these may
    // be as large as the tokens of OpenWebText.
    RemoveLeftoverFolders(cache_ / "tokens");
    const fs::path folder = cache_ / "tokens" / Key(corpus_.key);
    PreparedCorpus cached;
    if (FindCached(folder / "tokens", &cached)) return cached;
    if (options_.only_find) RefuseToPrepare(data_, vocab_size_);

    // Without the key of the text, so that a file that is replaced because it
    // was damaged does not make the work on the others void.
    const fs::path work = cache_ / "tokens" / (Key("") + ".work");
    const auto lock = Lock(work);
    if (FindCached(folder / "tokens", &cached)) return cached;
    try {
      Prepare(work);
      RequireUnchanged();
      std::error_code error;
      fs::remove_all(folder, error);  // a damaged one
      fs::rename(work / "done", folder, error);
      if (error) throw FileError("write", folder, error.value());
    } catch (...) {
      if (!keeps_work_) RemoveFolder(work);
      throw;
    }
    RemoveFolder(work);
    PreparedCorpus prepared =
        OpenPreparedCorpus(folder / "tokens", vocab_size_);
    prepared.corpus = data_.corpus;
    return prepared;
  }

 private:
  static void RemoveFolder(const fs::path& folder) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  void Note(const std::string& line) {
    if (options_.notify) {
      options_.notify(line);
    } else if (!options_.quiet) {
      fmt::print(stderr, "prepare: {}\n", line);
    }
  }

  // Everything that the token files depend on, besides the text.
  std::string Key(const std::string& text) const {
    return Sha256Hex(
               fmt::format(
                   "{}\n{}\n{}\n{}\n{}\n{}", kPreparationVersion, corpus_.kind,
                   text, vocab_size_, data_.max_bytes,
                   data_.normalise == Normalise::kNone ? "" : "normalised\n"))
        .substr(0, 32);
  }

  bool FindCached(const fs::path& prefix, PreparedCorpus* found) {
    if (!fs::exists(WithSuffix(prefix, ".json"))) return false;
    try {
      *found = OpenPreparedCorpus(prefix, vocab_size_);
    } catch (const Error& error) {
      Note(fmt::format("making it again: {}", error.what()));
      return false;
    }
    found->corpus = data_.corpus;  // the text may have been found elsewhere
    found->from_cache = true;
    return true;
  }

  // One process at a time works in the folder, which the one before may have
  // removed at its end.
  std::unique_ptr<FolderLock> Lock(const fs::path& work) {
    bool said = false;
    while (true) {
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
      } catch (const EnvironmentError&) {
        if (fs::exists(work)) throw;
      }
    }
  }

  // The shards, as far as they are used.
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

  void Prepare(const fs::path& work) {
    Note(fmt::format("{}: {}", corpus_.name, corpus_.description));
    const fs::path prefix = work / "done" / "tokens";
    const std::string model = MakeTokenizer(work);
    CheckDisk(work);
    const Tokenizer tokenizer(model, WithSuffix(prefix, ".model").string());
    RemoveFolder(work / "done");
    MakeFolder(work / "done");
    WriteFileAtomically(WithSuffix(prefix, ".model"), model);
    PreparedCorpus result;
    result.prefix = prefix;
    result.corpus = corpus_.name;
    result.description = corpus_.description;
    result.stand_in = corpus_.stand_in;
    result.provenance = corpus_.provenance;
    result.vocab_size = vocab_size_;
    result.tokens.tokenizer_sha256 = Sha256Hex(model);
    Encode(tokenizer, work, &result);
    WritePreparedCorpus(result);
  }

  // Otherwise the cache would hold the tokens of one text under the name of
  // another.
  void RequireUnchanged() {
    if (corpus_.current_key() == corpus_.key) return;
    keeps_work_ = false;
    throw DataError(fmt::format(
        "corpus {}: its text changed while it was read; nothing was kept. Give "
        "the same command again when nobody writes there any more",
        corpus_.name));
  }

  // What the first pass found out.
  struct Sampled {
    Strings digests;  // of the shards that it read
    int64_t documents = 0;
    int64_t text_bytes = 0;
    int64_t input_bytes = 0;     // of these shards
    double bytes_per_token = 1;  // of the sample
  };

  // First pass: sizes, and a sample to train the tokenizer on. A model that was
  // trained on the same shards is found again.
  std::string MakeTokenizer(const fs::path& work) {
    if (auto model = FindTokenizer(work)) return *model;
    RemoveFolder(work / "shards");  // of another tokenizer
    for (const char* name :
         {"tokens.bin", "lengths", "documents", "appended.jsonl"}) {
      fs::remove(work / name);
    }
    DocumentSample sample(TokenizerSampleBytes(vocab_size_));
    Progress progress("prepare: sampling", corpus_.bytes, 0, Quiet());
    sampled_ = {};
    const ShardList shards = Shards();
    std::string document;
    bool full = false;
    for (Shard shard; !full && shards(&shard);) {
      sampled_.digests.push_back(shard.digest);
      const auto source = shard.open();
      while (!full && source->Next(&document)) {
        stop_.ThrowIfRequested(kStopped);
        sampled_.text_bytes += static_cast<int64_t>(document.size());
        ++sampled_.documents;
        sample.Add(document);
        full = sampled_.text_bytes >= kSampledBytes;
        if (sampled_.documents % 1024 == 0) {
          progress.Update(std::min(
              corpus_.bytes, sampled_.input_bytes + source->input_bytes()));
        }
      }
      sampled_.input_bytes += full && source->input_bytes() > 0
                                  ? source->input_bytes()
                                  : shard.bytes;
    }
    if (sampled_.documents == 0) {
      throw DataError(
          data_.max_bytes != 0
              ? fmt::format("corpus {}: no document fits into data.max_bytes = "
                            "{}; raise it",
                            corpus_.name, data_.max_bytes)
              : fmt::format("corpus {}: it holds no document, only document "
                            "separators; give a text with documents",
                            corpus_.name));
    }
    const auto chosen = sample.Take();
    Note(fmt::format("training a tokenizer of {} pieces on {} of {} documents",
                     vocab_size_, chosen.size(), sampled_.documents));
    const std::string model = TrainTokenizer(chosen, vocab_size_);
    sampled_.bytes_per_token = BytesPerToken(Tokenizer(model, "model"), chosen);
    WriteFileAtomically(work / "model", model);
    WriteFileAtomically(work / "model.json",
                        JsonLine({{"digests", sampled_.digests},
                                  {"documents", sampled_.documents},
                                  {"text_bytes", sampled_.text_bytes},
                                  {"input_bytes", sampled_.input_bytes},
                                  {"bytes_per_token", sampled_.bytes_per_token},
                                  {"model_sha256", Sha256Hex(model)}}));
    return model;
  }

  std::optional<std::string> FindTokenizer(const fs::path& work) {
    std::error_code error;
    if (!fs::exists(work / "model.json", error)) return std::nullopt;
    const auto json = ParseJsonObject(ReadWholeFile(work / "model.json"));
    const std::string model = ReadWholeFile(work / "model");
    try {
      json.at("digests").get_to(sampled_.digests);
      json.at("documents").get_to(sampled_.documents);
      json.at("text_bytes").get_to(sampled_.text_bytes);
      json.at("input_bytes").get_to(sampled_.input_bytes);
      json.at("bytes_per_token").get_to(sampled_.bytes_per_token);
      if (json.at("model_sha256") != Sha256Hex(model)) return std::nullopt;
    } catch (const nlohmann::json::exception&) {
      return std::nullopt;
    }
    const ShardList shards = Shards();
    for (const std::string& digest : sampled_.digests) {
      Shard shard;
      if (!shards(&shard) || shard.digest != digest) return std::nullopt;
    }
    // If it read all there was, more of it changes the sample.
    Shard more;
    if (sampled_.text_bytes < kSampledBytes && shards(&more)) {
      return std::nullopt;
    }
    return model;
  }

  // What is to come, by what was sampled: so many bytes of text in a byte of
  // files, and tokens as the tokenizer makes them of a part of it.
  void CheckDisk(const fs::path& work) const {
    const double share = static_cast<double>(corpus_.bytes) /
                         static_cast<double>(std::max<int64_t>(
                             1, std::min(corpus_.bytes, sampled_.input_bytes)));
    const auto whole = [&](int64_t part) {
      return static_cast<int64_t>(static_cast<double>(part) * share);
    };
    int64_t text_bytes = whole(sampled_.text_bytes);
    if (data_.max_bytes != 0)
      text_bytes = std::min(text_bytes, data_.max_bytes);
    int64_t needed = DiskForTokens(text_bytes, sampled_.bytes_per_token,
                                   whole(sampled_.documents), vocab_size_);
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

  ProgressOptions Quiet() const {
    ProgressOptions options;
    options.quiet = options_.quiet;
    return options;
  }

  // Second pass: tokens.
  void Encode(const Tokenizer& tokenizer, const fs::path& work,
              PreparedCorpus* result) {
    ShardStore store(work, vocab_size_);
    ShardList shards = KeepWhatFits(&store);
    int64_t kept_bytes = 0;
    for (const ShardRecord& shard : store.appended()) kept_bytes += shard.bytes;
    if (kept_bytes > 0) {
      Note(fmt::format("going on behind {} shards that are finished",
                       store.appended().size()));
    }
    const int threads = options_.threads == 0
                            ? AvailableCores()
                            : static_cast<int>(options_.threads);
    const int workers = data_.max_bytes != 0
                            ? 1
                            : static_cast<int>(std::min<int64_t>(
                                  threads, corpus_.parallel_shards));
    try {
      ShardWorkers at_work(std::move(shards), &store, tokenizer, vocab_size_);
      at_work.Start(workers, threads / workers);
      Append(at_work, kept_bytes, &store);
    } catch (...) {
      keeps_work_ = store.HasWork();
      throw;
    }
    keeps_work_ = true;
    const ShardStore::Result made = store.Finish(result->prefix);
    FillIn(made, result);
  }

  // Appends shards as they come, until there are no more.
  void Append(ShardWorkers& workers, int64_t kept_bytes, ShardStore* store) {
    Progress progress("prepare: encoding, bytes of files", corpus_.bytes,
                      kept_bytes, Quiet());
    const double start = SteadySeconds();
    using State = ShardWorkers::State;
    for (State state = State::kWaiting; state != State::kNoMore;) {
      stop_.ThrowIfRequested(kStopped);
      state = workers.WaitFor(static_cast<int64_t>(store->appended().size()));
      if (state == State::kDone) store->AppendNext();
      const int64_t read = workers.input_bytes();
      progress.Update(std::min(corpus_.bytes, kept_bytes + read),
                      fmt::format("{:.1f} MB/s",
                                  static_cast<double>(read) * 1e-6 /
                                      std::max(1e-3, SteadySeconds() - start)));
    }
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

  // Keeps the finished shards of the store that are still the first of the
  // corpus, and returns the list of the others.
  ShardList KeepWhatFits(ShardStore* store) const {
    ShardList shards = Shards();
    const std::vector<ShardRecord>& appended = store->appended();
    size_t kept = 0;
    std::optional<Shard> next;  // taken from the list
    while (kept < appended.size() && !next) {
      Shard shard;
      if (!shards(&shard)) break;
      if (shard.digest == appended[kept].digest) {
        ++kept;
      } else {
        next = std::move(shard);
      }
    }
    if (kept == appended.size()) return shards;
    store->Keep(static_cast<int64_t>(kept));
    return [shards, next](Shard* shard) mutable {
      if (!next) return shards(shard);
      *shard = *std::exchange(next, std::nullopt);
      return true;
    };
  }

  DataConfig data_;
  int64_t vocab_size_;
  PrepareOptions options_;
  fs::path cache_;
  StopSignal stop_;
  Corpus corpus_;
  Sampled sampled_;
  bool keeps_work_ = false;  // a finished shard lies in the work's folder
};

}  // namespace

void RefuseToPrepare(const DataConfig& data, int64_t vocab_size) {
  throw EnvironmentError(fmt::format(
      "{} is not prepared; do that first, where no GPU waits for it: `bazel "
      "run //:prepare_data -- --corpus {} --vocab-size {}{}`",
      data.corpus, data.corpus, vocab_size,
      data.max_bytes == 0 ? ""
                          : fmt::format(" --max-bytes {}", data.max_bytes)));
}

PreparedCorpus PrepareCorpus(const DataConfig& data, int64_t vocab_size,
                             const PrepareOptions& options) {
  return Preparation(data, vocab_size, options).Run();
}

int64_t DiskForTokens(int64_t text_bytes, double bytes_per_token,
                      int64_t documents, int64_t vocab_size) {
  const double tokens = static_cast<double>(text_bytes) / bytes_per_token +
                        static_cast<double>(documents);
  // Of a document 20 bytes in the index and 12 while it is made; shards that
  // wait to be appended, and the deviation of the rest from what was sampled.
  return static_cast<int64_t>(
             tokens * 1.1 *
             static_cast<double>(TokenBytes(TokenTypeFor(vocab_size)))) +
         32 * documents + (16 << 20);
}

}  // namespace softmoe::trainer
