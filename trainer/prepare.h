// SPDX-License-Identifier: Apache-2.0
//
// prepare.h - from a corpus to token files: reads the documents, trains the
// tokenizer, writes PREFIX.{bin,idx,model,json}, or finds them in the cache.
#ifndef SOFTMOE_TRAINER_PREPARE_H_
#define SOFTMOE_TRAINER_PREPARE_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/config.h"

namespace softmoe::trainer {

// What PREFIX.json (TOKEN_FILES.md) says about PREFIX.bin.
struct PreparedCorpus {
  std::filesystem::path prefix;  // of .bin, .idx, .model and .json
  std::string corpus;            // as in DataConfig::corpus
  std::string description;       // one sentence, for reports
  bool stand_in = false;         // not the paper's corpus, not a user's file
  std::string provenance;        // packages with version and SHA-256, or file
  std::string corpus_sha256;     // of the documents' text, in order
  std::string tokenizer_sha256;  // of PREFIX.model
  std::string tokens_sha256;     // of PREFIX.bin
  std::string index_sha256;      // of PREFIX.idx
  int64_t vocab_size = 0;
  int64_t text_bytes = 0;
  int64_t num_documents = 0;
  int64_t num_tokens = 0;  // with one end-of-document token per document
  bool from_cache = false;
};

struct PrepareOptions {
  std::filesystem::path cache;  // empty: CacheFolder()
  int64_t threads = 0;          // 0: one per available core
  bool quiet = false;           // no progress on stderr
};

// Makes the token files of `data.corpus` for a vocabulary of `vocab_size`, or
// finds them: the cache is keyed by the text and by everything else that they
// depend on, and an entry appears in it whole or not at all. Downloads a
// stand-in corpus that is not there yet. The same corpus and options give the
// same bytes, for any number of threads.
//
// Throws ConfigError (unknown corpus), DataError (empty or binary corpus, one
// too small for the vocabulary), EnvironmentError (offline, missing file, disk
// full).
PreparedCorpus PrepareCorpus(const DataConfig& data, int64_t vocab_size,
                             const PrepareOptions& options = {});

// Reads PREFIX.json and checks the other three files against the hashes in
// it. Throws DataError with the remedy if one was damaged or exchanged.
PreparedCorpus OpenPreparedCorpus(const std::filesystem::path& prefix);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_PREPARE_H_
