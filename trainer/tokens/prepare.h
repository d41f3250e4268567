// SPDX-License-Identifier: Apache-2.0
//
// prepare.h - from a corpus to token files: reads the documents, trains the
// tokenizer, writes PREFIX.{bin,idx,model,manifest,json}, or finds them in the
// cache.
#ifndef SOFTMOE_TRAINER_TOKENS_PREPARE_H_
#define SOFTMOE_TRAINER_TOKENS_PREPARE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "core/config/config.h"
#include "trainer/corpora/corpus.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::trainer {

struct PrepareOptions {
  std::filesystem::path cache = {};  // empty: CacheFolder()
  CorpusPlaces places = {};          // of published corpora
  ReadOptions read = {};
  // The PREFIX.model of other token files, to encode with; empty: a tokenizer
  // is trained.
  std::filesystem::path tokenizer = {};
  bool verify = false;  // compare the files with their publishers' hashes
  int64_t threads = 0;  // 0: one per available core
  bool quiet = false;   // no progress on stderr
  // If the tokens are not in the cache, throws EnvironmentError with the
  // command that prepares the corpus.
  bool only_find = false;
  // Receives one line per stage; empty: printed on stderr, unless `quiet`.
  std::function<void(const std::string&)> notify = {};
};

// Makes the token files of `data.corpus` for a vocabulary of `vocab_size` (0:
// that of the given tokenizer), or finds them in the cache. The cache is keyed
// by the text and by everything else on which they depend, and an entry appears
// in it whole or not at all. Downloads a stand-in corpus that is missing. The
// same corpus and options give the same bytes, for any number of threads,
// interrupted or not: shards that were finished when a process was stopped or
// killed are kept for the next.
//
// Throws ConfigError (unknown corpus; a vocabulary size other than the given
// tokenizer's, or than any can have), DataError (empty or binary corpus, one
// too small for the vocabulary, or changed while it was read), EnvironmentError
// (offline, missing file, disk full), StoppedError (stop_signal.h).
PreparedCorpus PrepareCorpus(const DataConfig& data, int64_t vocab_size,
                             const PrepareOptions& options = {});

// Throws the EnvironmentError of PrepareOptions::only_find; `places` as there.
[[noreturn]] void RefuseToPrepare(const DataConfig& data, int64_t vocab_size,
                                  const CorpusPlaces& places);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_PREPARE_H_
