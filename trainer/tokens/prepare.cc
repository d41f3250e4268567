// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/files/temporary_folder.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "core/text/progress.h"
#include "trainer/corpora/corpus.h"
#include "trainer/corpora/document_sample.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// Increased when the same corpus and options would give other token files.
constexpr int kPreparationVersion = 1;

// The tokenizer's sample is drawn from this much of the corpus: reading all of
// C4 twice would not improve it.
constexpr int64_t kSampledBytes = 8'000'000'000;

// Documents are encoded in batches of this size; no result depends on it.
constexpr int64_t kBatchBytes = 4 << 20;

constexpr const char* kStopped =
    "no token files were written; the same command starts again";

// Passes on whole documents as long as they fit into `max_bytes` together.
class FirstBytes : public DocumentSource {
 public:
  FirstBytes(std::unique_ptr<DocumentSource> source, int64_t max_bytes)
      : source_(std::move(source)), left_(max_bytes) {}
  bool Next(std::string* document) override {
    if (!source_->Next(document)) return false;
    left_ -= static_cast<int64_t>(document->size());
    return left_ >= 0;
  }

 private:
  std::unique_ptr<DocumentSource> source_;
  int64_t left_;
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
        FindCorpus(data_.corpus,
                   {.cache = cache_, .notify = [this](const std::string& line) {
                      stop_.ThrowIfRequested(kStopped);
                      Note(line);
                    }});
    // Removes leftovers of killed processes, whatever they prepared: these may
    // be as large as the tokens of OpenWebText.
    RemoveLeftoverFolders(cache_ / "tokens");
    const fs::path folder = cache_ / "tokens" / Key();
    PreparedCorpus cached;
    if (FindCached(folder / "tokens", &cached)) return cached;
    if (options_.only_find) RefuseToPrepare(data_, vocab_size_);

    TemporaryFolder work(folder);
    Prepare(work.path() / "tokens");
    RequireUnchanged();
    work.Commit();
    return OpenPreparedCorpus(folder / "tokens", vocab_size_);
  }

 private:
  void Note(const std::string& line) {
    if (options_.notify) {
      options_.notify(line);
    } else if (!options_.quiet) {
      fmt::print(stderr, "prepare: {}\n", line);
    }
  }

  // Everything that the token files depend on.
  std::string Key() const {
    return Sha256Hex(fmt::format("{}\n{}\n{}\n{}\n{}\n", kPreparationVersion,
                                 data_.corpus, corpus_.key, vocab_size_,
                                 data_.max_bytes))
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
    found->from_cache = true;
    return true;
  }

  std::unique_ptr<DocumentSource> Open() const {
    auto source = corpus_.open();
    if (data_.max_bytes == 0) return source;
    return std::make_unique<FirstBytes>(std::move(source), data_.max_bytes);
  }

  void Prepare(const fs::path& prefix) {
    Note(fmt::format("{}: {}", corpus_.name, corpus_.description));
    const std::string model = MakeTokenizer();
    WriteFileAtomically(WithSuffix(prefix, ".model"), model);
    PreparedCorpus result;
    result.prefix = prefix;
    result.corpus = corpus_.name;
    result.description = corpus_.description;
    result.stand_in = corpus_.stand_in;
    result.provenance = corpus_.provenance;
    result.vocab_size = vocab_size_;
    result.tokens.tokenizer_sha256 = Sha256Hex(model);
    Encode(Tokenizer(model, WithSuffix(prefix, ".model").string()), &result);
    WritePreparedCorpus(result);
  }

  // Otherwise the cache would hold the tokens of one text under the name of
  // another.
  void RequireUnchanged() const {
    if (corpus_.current_key() == corpus_.key) return;
    throw DataError(fmt::format(
        "corpus {}: its text changed while it was read; nothing was kept. Give "
        "the same command again when nobody writes there any more",
        corpus_.name));
  }

  // First pass: sizes, and a sample to train the tokenizer on.
  std::string MakeTokenizer() {
    DocumentSample sample(TokenizerSampleBytes(vocab_size_));
    std::string document;
    int64_t documents = 0;
    const auto source = Open();
    while (sampled_bytes_ < kSampledBytes && source->Next(&document)) {
      stop_.ThrowIfRequested(kStopped);
      sampled_bytes_ += static_cast<int64_t>(document.size());
      ++documents;
      sample.Add(document);
    }
    if (documents == 0 && data_.max_bytes != 0) {
      throw DataError(fmt::format(
          "corpus {}: no document fits into data.max_bytes = {}; raise it",
          corpus_.name, data_.max_bytes));
    }
    if (documents == 0) {
      throw DataError(fmt::format(
          "corpus {}: it holds no document, only document separators; give "
          "a text with documents",
          corpus_.name));
    }
    CheckDisk();
    const auto chosen = sample.Take();
    Note(fmt::format("training a tokenizer of {} pieces on {} of {} documents",
                     vocab_size_, chosen.size(), documents));
    return TrainTokenizer(chosen, vocab_size_);
  }

  // At worst each byte of text becomes a token.
  void CheckDisk() const {
    const int64_t needed =
        sampled_bytes_ * TokenBytes(TokenTypeFor(vocab_size_)) + (16 << 20);
    const int64_t there = FreeDiskBytes(cache_);
    if (there >= needed) return;
    throw EnvironmentError(fmt::format(
        "{}: {} MB free, but preparing corpus {} may take {} MB; free some, "
        "set XDG_CACHE_HOME to a folder on a larger disk, or use less of the "
        "corpus (data.max_bytes)",
        cache_.string(), there / 1000000, corpus_.name, needed / 1000000));
  }

  // Second pass: tokens. Batches are encoded in parallel and written in order.
  void Encode(const Tokenizer& tokenizer, PreparedCorpus* result) {
    TokenWriter writer(result->prefix, vocab_size_);
    ThreadPool pool(static_cast<int>(options_.threads));
    ProgressOptions progress_options;
    progress_options.quiet = options_.quiet;
    Progress progress("prepare: encoding", sampled_bytes_, 0, progress_options);
    Sha256 text_hash;
    const auto source = Open();
    for (bool more = true; more;) {
      stop_.ThrowIfRequested(kStopped);
      std::vector<std::string> batch;
      int64_t bytes = 0;
      std::string document;
      while (bytes < kBatchBytes && (more = source->Next(&document))) {
        bytes += static_cast<int64_t>(document.size());
        text_hash.Update(document.c_str(), document.size() + 1);
        batch.push_back(std::move(document));
      }
      std::vector<std::vector<int32_t>> ids(batch.size());
      pool.ParallelFor(static_cast<int64_t>(batch.size()), [&](int64_t i) {
        const auto d = static_cast<size_t>(i);
        ids[d] = tokenizer.Encode(batch[d]);
        ids[d].push_back(tokenizer.end_of_document());
      });
      for (const auto& document_ids : ids) writer.AddDocument(document_ids);
      result->text_bytes += bytes;
      progress.Update(std::min(result->text_bytes, sampled_bytes_));
    }
    const TokenWriter::Hashes hashes = writer.Commit();
    result->num_documents = writer.num_documents();
    result->num_tokens = writer.num_tokens();
    result->corpus_sha256 = Sha256Hex(text_hash.Finish());
    result->tokens.data_sha256 = hashes.tokens_sha256;
    result->tokens.index_sha256 = hashes.index_sha256;
  }

  DataConfig data_;
  int64_t vocab_size_;
  PrepareOptions options_;
  fs::path cache_;
  StopSignal stop_;
  Corpus corpus_;
  int64_t sampled_bytes_ = 0;
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

}  // namespace softmoe::trainer
