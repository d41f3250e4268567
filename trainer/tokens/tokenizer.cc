// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/tokenizer.h"

#include <fmt/core.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/process/isolated_call.h"
#include "trainer/corpora/utf8.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

constexpr int64_t kMaxVocabSize = 1 << 20;

// SentencePiece skips longer "sentences", and its time grows with the length of
// words: longer lines are cut there, at a space.
constexpr size_t kMaxSentence = 4000;

// SentencePiece's sign for a space, in its pieces.
constexpr std::string_view kSpace = "\u2581";

// Text that other models change: spaces that they add, drop or join, and
// characters that they replace (NFKC) or do not know.
constexpr std::string_view kProbe = " a  b\n\n\n\uFB01\u00BD\uFF21\u3000c ";

// Limits on the words that a WordEncoder remembers: longer ones are rare, and a
// table of this many takes some 6 MB.
constexpr size_t kMaxWord = 32;
constexpr size_t kMaxWords = size_t{1} << 16;

// Takes a protobuf number off the front of `*bytes`; nullopt if there is none.
std::optional<uint64_t> TakeVarint(std::string_view* bytes) {
  uint64_t number = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    number |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

// Calls visit(number, content) for each field of bytes in a protobuf message.
// Returns false if the message cannot be read to its end.
template <typename Visit>
bool VisitByteFields(std::string_view message, const Visit& visit) {
  while (!message.empty()) {
    const auto tag = TakeVarint(&message);
    // Of a longer tag, protobuf may read only the low bits, as another field.
    if (!tag || *tag > std::numeric_limits<uint32_t>::max()) return false;
    const uint64_t type = *tag & 7;
    if (type == 0) {
      if (!TakeVarint(&message)) return false;
      continue;
    }
    std::optional<uint64_t> size;
    if (type == 1) size = 8;
    if (type == 2) size = TakeVarint(&message);
    if (type == 5) size = 4;
    if (!size || *size > message.size()) return false;
    if (type == 2) visit(*tag >> 3, message.substr(0, *size));
    message.remove_prefix(*size);
  }
  return true;
}

// Whether a model has, or may have, a table of replacements for texts before it
// encodes or after it decodes them. The library does not show a model's
// settings, so this reads the fields of sentencepiece_model.proto.
bool ReplacesCharacters(std::string_view model) {
  constexpr uint64_t kNormalizer = 3, kDenormalizer = 5, kCharsmap = 2;
  bool replaces = false;
  const bool all = VisitByteFields(model, [&](uint64_t field, auto settings) {
    if (field != kNormalizer && field != kDenormalizer) return;
    const bool read = VisitByteFields(settings, [&](uint64_t part, auto table) {
      replaces |= part == kCharsmap && !table.empty();
    });
    replaces |= !read;
  });
  return replaces || !all;
}

// Hands documents to the trainer line by line.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(std::span<const std::string> documents)
      : documents_(documents) {
    Next();
  }
  bool done() const override { return done_; }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    do {
      if (rest_.empty()) {
        if (document_ == documents_.size()) {
          done_ = true;
          return;
        }
        rest_ = documents_[document_++];
      }
      const size_t line = std::min(rest_.find('\n'), rest_.size());
      size_t length = line;
      if (length > kMaxSentence) {
        length = rest_.rfind(' ', kMaxSentence);
        if (length == std::string_view::npos || length == 0) {
          length = kMaxSentence;
          while (Continues(rest_[length])) --length;  // whole characters
        }
      }
      value_ = rest_.substr(0, length);
      rest_.remove_prefix(length == line && line < rest_.size() ? line + 1
                                                                : length);
    } while (value_.empty());
  }

 private:
  std::span<const std::string> documents_;
  size_t document_ = 0;
  std::string_view rest_;
  std::string value_;
  bool done_ = false;
};

// The number after `marker` in a message of SentencePiece, or 0.
int64_t NumberBehind(const std::string& message, const std::string& marker) {
  const size_t at = message.find(marker);
  if (at == std::string::npos) return 0;
  int64_t number = 0;
  const char* begin = message.data() + at + marker.size();
  std::from_chars(begin, message.data() + message.size(), number);
  return number;
}

// Why no tokenizer of `vocab_size` pieces could be made, and the remedy.
// SentencePiece's own message would send the user to its sources.
std::string Explain(const std::string& message, int64_t vocab_size) {
  const std::string wanted = fmt::format("model.vocab_size is {}", vocab_size);
  if (const int64_t most = NumberBehind(message, "set it to a value <= ")) {
    if (most < kMinVocabSize) {
      return fmt::format(
          "it has text for only {} pieces, but a tokenizer has at least {}; "
          "use a larger corpus, or one that repeats itself less",
          most, kMinVocabSize);
    }
    return fmt::format(
        "it has text for only {0} pieces, but {1}; use a larger corpus or a "
        "smaller model.vocab_size, at most {0}",
        most, wanted);
  }
  if (const int64_t least = NumberBehind(
          message, fmt::format("required_chars. {} vs ", vocab_size))) {
    return fmt::format(
        "its characters alone are {0} pieces, but {1}; use a larger "
        "model.vocab_size, at least {0}",
        least, wanted);
  }
  return message + "; use a larger corpus or a smaller model.vocab_size";
}

}  // namespace

void RequireVocabSize(int64_t vocab_size) {
  if (vocab_size < kMinVocabSize || vocab_size > kMaxVocabSize) {
    throw ConfigError(
        fmt::format("model.vocab_size = {}: a tokenizer has {} to {} pieces",
                    vocab_size, kMinVocabSize, kMaxVocabSize));
  }
}

std::string TrainTokenizer(std::span<const std::string> documents,
                           int64_t vocab_size) {
  RequireVocabSize(vocab_size);
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocab_size)},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9995"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"split_digits", "true"},
      {"unk_id", "0"},
      {"eos_id", "1"},
      {"bos_id", "-1"},
      {"pad_id", "-1"},
      {"eos_piece", "<|endoftext|>"},
      {"num_threads", "1"},
      {"input_sentence_size", "0"},  // all: the caller has chosen a sample
      {"max_sentence_length", std::to_string(kMaxSentence + 1)},
      {"minloglevel", "2"},  // errors only
  };
  Sentences sentences(documents);
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(options, &sentences, &model);
  if (!status.ok()) {
    throw DataError(fmt::format(
        "cannot train a tokenizer of {} pieces on this corpus ({} documents "
        "sampled): {}",
        vocab_size, documents.size(), Explain(status.ToString(), vocab_size)));
  }
  return model;
}

int64_t TokenizerSampleBytes(int64_t vocab_size) {
  // About 1000 bytes per piece: the pairs that BPE merges are frequent enough
  // long before that. At most 64 MB, on which SentencePiece trains in minutes.
  return std::clamp<int64_t>(vocab_size * 1000, 1'000'000, 64'000'000);
}

struct Tokenizer::Impl {
  sentencepiece::SentencePieceProcessor processor;
};

void CheckTokenizerModel(std::string_view model, const std::string& name) {
  const IsolatedResult result = CallIsolated(
      [&] {
        const Tokenizer tokenizer(model, name);
        std::vector<int32_t> all(static_cast<size_t>(tokenizer.vocab_size()));
        for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
        tokenizer.Decode(all);
        // Every ASCII character, a long word, and characters of several bytes.
        std::string probe = "The quick brown fox, 0123456789.\n\t";
        for (int c = 1; c < 128; ++c) probe += fmt::format("{:c} ", c);
        probe += std::string(2000, 'a') + "\u00E9\u4E2D\U0001F600";
        return tokenizer.Decode(tokenizer.Encode(probe));
      },
      {});
  if (!result.completed) {
    throw DataError(
        fmt::format("{}: not a usable SentencePiece model: loading it {}; {}",
                    name, result.failure, kMakeTokensAgain));
  }
}

Tokenizer::Tokenizer(std::string_view model, const std::string& name)
    : impl_(std::make_unique<Impl>()) {
  auto& processor = impl_->processor;
  const auto status = processor.LoadFromSerializedProto(model);
  if (!status.ok()) {
    throw DataError(
        fmt::format("{}: no SentencePiece model: {}", name, status.ToString()));
  }
  vocab_size_ = processor.GetPieceSize();
  end_of_document_ = processor.eos_id();
  if (end_of_document_ < 0 || end_of_document_ >= vocab_size_) {
    throw DataError(
        fmt::format("{}: the model has no end-of-document piece (eos_id {} of "
                    "{} pieces)",
                    name, end_of_document_, vocab_size_));
  }
  const std::vector<int32_t> probe = Encode(kProbe);
  int64_t bytes = 0;
  for (const int32_t id : probe) bytes += PieceBytes(id);
  // Decoding drops a space that a model puts before each text; bytes show it.
  keeps_texts_ = !ReplacesCharacters(model) && Decode(probe) == kProbe &&
                 std::cmp_equal(bytes, kProbe.size());

  // Only a BPE model can sample without listing the best encodings.
  std::vector<int> sample;
  std::vector<std::vector<int>> best;
  const bool is_bpe = processor.SampleEncode("a", -1, 0.1F, &sample).ok() &&
                      !processor.NBestEncode("a", 1, &best).ok();
  // A model that keeps line ends has a piece for them, or all bytes as pieces.
  bool reaches_over = false;
  for (int id = 0; id < vocab_size_; ++id) {
    if (processor.IsControl(id)) continue;
    const std::string& piece = processor.IdToPiece(id);
    reaches_over |= piece.find(kSpace, 1) != std::string::npos ||
                    piece.find_first_of(" \n") != std::string::npos;
  }
  pieces_end_at_words_ = keeps_texts_ && is_bpe && !reaches_over;
}

Tokenizer Tokenizer::FromFile(const std::filesystem::path& path) {
  const std::string model = ReadWholeFile(path);
  CheckTokenizerModel(model, path.string());
  return Tokenizer(model, path.string());
}

Tokenizer Tokenizer::FromCheckedFile(const std::filesystem::path& path,
                                     const std::string& sha256) {
  const std::string model = ReadWholeFile(path);
  const std::string found = Sha256Hex(model);
  if (found != sha256) {
    throw DataError(fmt::format(
        "{}: replaced while this program ran: its SHA-256 is {}, but was {}; "
        "put the old file back, and run the same command again",
        path.string(), found, sha256));
  }
  return Tokenizer(model, path.string());
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::Encode(std::string_view text) const {
  std::vector<int> ids;
  const auto status = impl_->processor.Encode(
      absl::string_view(text.data(), text.size()), &ids);
  SOFTMOE_CHECK(status.ok()) << status.ToString();
  return ids;
}

WordEncoder::WordEncoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

void WordEncoder::Encode(std::string_view text, std::vector<int32_t>* ids) {
  if (!tokenizer_->pieces_end_at_words()) return EncodeWord(text, ids);
  while (!text.empty()) {
    // A word includes the space before it; a line end is a word by itself.
    const size_t end =
        text[0] == '\n' ? 1
                        : std::min(text.find_first_of(" \n", 1), text.size());
    EncodeWord(text.substr(0, end), ids);
    text.remove_prefix(end);
  }
}

void WordEncoder::EncodeWord(std::string_view word, std::vector<int32_t>* ids) {
  const auto found = known_.find(word);
  if (found != known_.end()) {
    const auto begin = known_ids_.begin() + found->second.begin;
    ids->insert(ids->end(), begin, begin + found->second.count);
    return;
  }
  const std::vector<int32_t> made = tokenizer_->Encode(word);
  ids->insert(ids->end(), made.begin(), made.end());
  if (word.size() > kMaxWord) return;
  if (known_.size() == kMaxWords) {
    known_.clear();  // the frequent ones are soon known again
    known_ids_.clear();
  }
  known_[std::string(word)] = {static_cast<uint32_t>(known_ids_.size()),
                               static_cast<uint32_t>(made.size())};
  known_ids_.insert(known_ids_.end(), made.begin(), made.end());
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) {
    SOFTMOE_CHECK(id >= 0 && id < vocab_size_) << "id=" << id;
  }
  std::string text;
  const auto status =
      impl_->processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  SOFTMOE_CHECK(status.ok()) << status.ToString();
  return text;
}

std::optional<int64_t> Tokenizer::TextBytes(
    std::span<const int64_t> counts) const {
  SOFTMOE_CHECK(std::cmp_equal(counts.size(), vocab_size_)) << counts.size();
  if (!keeps_texts_) return std::nullopt;
  int64_t bytes = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int id = static_cast<int>(i);
    if (counts[i] == 0) continue;
    if (impl_->processor.IsUnknown(id)) return std::nullopt;
    bytes += counts[i] * PieceBytes(id);
  }
  return bytes;
}

int64_t Tokenizer::PieceBytes(int32_t id) const {
  const auto& processor = impl_->processor;
  if (processor.IsByte(id)) return 1;
  if (processor.IsControl(id) || processor.IsUnused(id)) return 0;
  const std::string& piece = processor.IdToPiece(id);
  auto bytes = static_cast<int64_t>(piece.size());
  for (size_t at = 0; (at = piece.find(kSpace, at)) != std::string::npos;
       at += kSpace.size()) {
    bytes -= static_cast<int64_t>(kSpace.size()) - 1;
  }
  return bytes;
}

}  // namespace softmoe::trainer
