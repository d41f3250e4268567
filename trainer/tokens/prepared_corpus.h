// SPDX-License-Identifier: Apache-2.0
//
// prepared_corpus.h - PREFIX.json: what token files were made from, and the
// identity that a run on them has.
//
// A prepared corpus is five files: PREFIX.bin and PREFIX.idx (token_file.h),
// PREFIX.model (the tokenizer), PREFIX.manifest (manifest.h) and PREFIX.json
// (this; TOKEN_FILES.md lists the keys).
#ifndef SOFTMOE_TRAINER_TOKENS_PREPARED_CORPUS_H_
#define SOFTMOE_TRAINER_TOKENS_PREPARED_CORPUS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/config/config.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::optimized {
struct DeviceIdentity;
}  // namespace softmoe::optimized

namespace softmoe::trainer {

struct PreparedCorpus {
  std::filesystem::path prefix;  // of the five files
  std::string corpus;            // as in DataConfig::corpus
  std::string description;       // one sentence, for reports
  bool stand_in = false;         // neither the paper's corpus nor a user's file
  std::string provenance;        // packages or files, with version and SHA-256
  int64_t vocab_size = 0;
  int64_t text_bytes = 0;  // of the documents
  int64_t num_documents = 0;
  int64_t num_tokens = 0;     // with one end-of-document token per document
  std::string corpus_sha256;  // of the text: text_sha256 of Total (manifest.h)
  TokenIdentity tokens;       // of PREFIX.bin, .idx and .model
  // For a published corpus: its name if this is the whole of it, else how it
  // differs. If empty, PREFIX.json leaves it out.
  std::string text_of;
  // How much of the text was taken, and in which form (DataConfig); the records
  // in golden/runs have neither.
  std::optional<int64_t> max_bytes;
  std::optional<Normalise> normalise;
  bool from_cache = false;  // not in PREFIX.json
};

// Writes PREFIX.json. Throws EnvironmentError.
void WritePreparedCorpus(const PreparedCorpus& corpus);

// Reads PREFIX.json and checks tokens, index and tokenizer against its hashes.
// The hashes of tokens and index are remembered (token_memory.h).
// PREFIX.manifest is not read.
//
//   vocab_size  what the configuration requires (model.vocab_size); 0: any
// Throws EnvironmentError if a file is missing, DataError with the remedy if
// one is damaged, exchanged, or made for another vocabulary, StoppedError after
// a signal while another process reads them (token_memory.h).
PreparedCorpus OpenPreparedCorpus(const std::filesystem::path& prefix,
                                  int64_t vocab_size = 0);

// Reads PREFIX.json alone, which may exist without the files that it describes.
// Throws EnvironmentError if it is missing, DataError with the remedy if
// damaged.
PreparedCorpus ReadPreparedCorpus(const std::filesystem::path& prefix,
                                  int64_t vocab_size = 0);

// Throws DataError if these are not tokens of `data.corpus`, or of another part
// or form of it than `data` asks for, as far as PREFIX.json tells.
void RequireTokensOf(const DataConfig& data, const PreparedCorpus& corpus);

// Convert to the text of PREFIX.json and back; error messages name `path`.
std::string PreparedCorpusText(const PreparedCorpus& corpus);
PreparedCorpus ParsePreparedCorpus(const std::string& text,
                                   const std::filesystem::path& path);

// Throws ConfigError if a file of this prefix exists that CopyPreparedCorpus
// would replace and that does not belong to a prepared corpus.
void RequireReplaceable(const std::filesystem::path& prefix);

// Puts the files under another prefix, PREFIX.manifest first and PREFIX.json
// last: links to them where the file system can, else copies. Throws
// StoppedError on a signal while it copies (stop_signal.h).
PreparedCorpus CopyPreparedCorpus(const PreparedCorpus& corpus,
                                  const std::filesystem::path& prefix);

// Returns the identity of a run of `config` on the token files PREFIX.{bin,idx}
// computed on `where`. With PREFIX.json, the files are checked against it, and
// the tokenizer is tried in a child process: call this before threads work.
// They can then use Tokenizer::FromCheckedFile. Without it, the files are
// hashed, every id is checked, and the run has no tokenizer. Either way, each
// machine reads the files once. Throws EnvironmentError if a file is missing,
// DataError if one is damaged, exchanged, or has a larger vocabulary.
RunIdentity IdentifyRun(const Config& config,
                        const std::filesystem::path& prefix,
                        const optimized::DeviceIdentity& where);

// Replaces the part of `identity` that says where the run is computed.
void SetPlace(const optimized::DeviceIdentity& where, RunIdentity& identity);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_PREPARED_CORPUS_H_
