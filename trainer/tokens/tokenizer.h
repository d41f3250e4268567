// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.h - text to token ids and back: SentencePiece BPE, byte fallback.
//
// Lossless: no normalisation, no spaces added or removed, and text that no
// piece covers becomes its UTF-8 bytes (line ends too: one token each). The
// only exception is U+2581, SentencePiece's own sign for a space, which comes
// back as a space. Id 0 is the unknown piece (never produced), id 1 ends a
// document.
#ifndef SOFTMOE_TRAINER_TOKENS_TOKENIZER_H_
#define SOFTMOE_TRAINER_TOKENS_TOKENIZER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace softmoe::trainer {

// The smallest vocabulary: 2 control pieces, 256 bytes, and some text.
inline constexpr int64_t kMinVocabSize = 320;

// Throws ConfigError for a size of vocabulary that TrainTokenizer refuses.
void RequireVocabSize(int64_t vocab_size);

// Returns the bytes of a model file, trained on `documents` (UTF-8). The same
// documents and size give the same bytes. Throws ConfigError for a size out of
// range, DataError if the documents cannot fill the vocabulary.
std::string TrainTokenizer(std::span<const std::string> documents,
                           int64_t vocab_size);

// How much text is worth using to train a vocabulary of this size, in bytes.
int64_t TokenizerSampleBytes(int64_t vocab_size);

// Throws DataError with the remedy if SentencePiece cannot load `model` (the
// bytes of a model file), or crashes, hangs or takes over 1 GiB doing so; the
// attempt runs in a child process. For files that this process did not write
// itself (DESIGN.md, ruling 11). `name` is for the message.
void CheckTokenizerModel(std::string_view model, const std::string& name);

class Tokenizer {
 public:
  // Takes the bytes of a model file that passed CheckTokenizerModel or came
  // from TrainTokenizer. Throws DataError. `name` is for messages.
  Tokenizer(std::string_view model, const std::string& name);
  // Loads a model file after checking it in a child process; call this before
  // threads work (core/process/isolated_call.h).
  static Tokenizer FromFile(const std::filesystem::path& path);
  // Loads a model file whose bytes, by their SHA-256, this process has already
  // checked. Throws DataError if the file has changed since.
  static Tokenizer FromCheckedFile(const std::filesystem::path& path,
                                   const std::string& sha256);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  int64_t vocab_size() const { return vocab_size_; }
  int32_t end_of_document() const { return end_of_document_; }

  // Whether a text has the same ids when it is cut before each space and around
  // each line end. True for every model of TrainTokenizer: no piece crosses
  // such a cut, and BPE merges one pair at a time.
  bool pieces_end_at_words() const { return pieces_end_at_words_; }

  // Ids of a UTF-8 text, without the end of document. From any thread.
  std::vector<int32_t> Encode(std::string_view text) const;
  // Returns the text of ids in [0, vocab_size); the end of a document has none.
  std::string Decode(std::span<const int32_t> ids) const;

  // Returns the bytes of UTF-8 text behind `counts`[i] tokens of each id i:
  // those of the pieces, where U+2581 counts as the one byte of a space (even a
  // U+2581 of the text itself, which has three). Ends of documents have none.
  // nullopt if the counts do not determine the bytes: a token stands for a
  // character that the model does not know, or the model (never ours) has a
  // table of characters to replace or changes a probe of white space, line ends
  // and rare characters.
  std::optional<int64_t> TextBytes(std::span<const int64_t> counts) const;

 private:
  struct Impl;

  // How many bytes of text piece `id` stands for, as TextBytes counts.
  int64_t PieceBytes(int32_t id) const;

  std::unique_ptr<Impl> impl_;
  int64_t vocab_size_ = 0;
  int32_t end_of_document_ = 0;
  bool keeps_texts_ = false;  // no table, and keeps the probe of TextBytes
  bool pieces_end_at_words_ = false;
};

// Tokenizer::Encode for long texts: a word is encoded once and remembered. The
// ids are the same. Memory is bounded; one thread at a time.
class WordEncoder {
 public:
  // `tokenizer` must outlive this object.
  explicit WordEncoder(const Tokenizer& tokenizer);

  // Appends the ids of a UTF-8 text to `*ids`.
  void Encode(std::string_view text, std::vector<int32_t>* ids);

 private:
  void EncodeWord(std::string_view word, std::vector<int32_t>* ids);

  // Finds texts without copying them.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Range {
    uint32_t begin = 0, count = 0;  // in known_ids_
  };

  const Tokenizer* tokenizer_;
  std::unordered_map<std::string, Range, Hash, std::equal_to<>> known_;
  std::vector<int32_t> known_ids_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKENIZER_H_
