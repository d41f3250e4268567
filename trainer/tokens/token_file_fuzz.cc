// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as PREFIX.idx and PREFIX.bin, and modified files that we
// wrote. In accepted files every document and every id is in range.
#include <bit>

#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "trainer/tokens/dataset.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::fuzz {
namespace {

using trainer::WithSuffix;

constexpr int64_t kVocabularies[] = {1, 8, 65499, 65500, 1 << 24};

// Documents of up to 15 tokens as we write them, then a few bytes changed.
void WriteChanged(const std::filesystem::path& prefix, int64_t vocab_size,
                  Choices& choices) {
  const auto id_bytes = static_cast<size_t>(
      trainer::TokenBytes(trainer::TokenTypeFor(vocab_size)));
  std::string tokens;
  std::vector<int32_t> lengths(choices.Below(16));
  for (int32_t& length : lengths) {
    length = static_cast<int32_t>(choices.Below(16));
    for (int32_t i = 0; i < length; ++i) {
      const auto id = static_cast<int32_t>(choices.Byte() % vocab_size);
      tokens.append(reinterpret_cast<const char*>(&id), id_bytes);
    }
  }
  WriteScratch(WithSuffix(prefix, ".bin"), tokens);
  trainer::WriteTokenIndex(WithSuffix(prefix, ".idx"), vocab_size, lengths);
  for (const char* suffix : {".idx", ".bin"}) {
    std::string bytes = ReadWholeFile(WithSuffix(prefix, suffix));
    for (size_t i = choices.Below(4); i > 0; --i) {
      const size_t at = choices.Below(bytes.size() + 1);
      switch (choices.Below(3)) {
        case 0:
          if (at < bytes.size()) bytes[at] = static_cast<char>(choices.Byte());
          break;
        case 1:
          bytes.resize(at);
          break;
        default: {
          const auto number =
              std::bit_cast<std::array<char, 8>>(choices.Integer());
          for (size_t b = 0; b < 8 && at + b < bytes.size(); ++b) {
            bytes[at + b] = number[b];
          }
        }
      }
    }
    WriteScratch(WithSuffix(prefix, suffix), bytes);
  }
}

void CheckTokens(const trainer::TokenFile& file) {
  int64_t previous = 0;
  for (int64_t d = 0; d <= file.num_documents(); ++d) {
    const int64_t begin = file.DocumentBegin(d);
    Require(begin >= previous && begin <= file.num_tokens(),
            "documents are out of order");
    previous = begin;
  }
  Require(previous == file.num_tokens(), "documents end before the tokens");
  std::vector<int32_t> ids(static_cast<size_t>(file.num_tokens()));
  if (!Accepts([&] { file.Read(0, file.num_tokens(), ids.data()); })) return;
  for (const int32_t id : ids) {
    Require(id >= 0 && id < file.vocab_size(), "an id outside the vocabulary");
  }
}

void CheckBatches(const std::filesystem::path& prefix, int64_t vocab_size) {
  Config config;
  config.model.vocab_size = vocab_size;
  config.model.sequence_length = 4;
  config.training.global_batch_sequences = 2;
  config.data.validation_fraction = 0.3;
  Accepts([&] {
    const trainer::Dataset data(config, prefix);
    std::vector<int32_t> inputs(8), targets(8);
    data.FillBatch(int64_t{1} << 30, 0, 2, inputs, targets);
    data.FillValidation(data.num_validation_sequences() - 1, 1,
                        std::span(inputs).first(4),
                        std::span(targets).first(4));
    if (vocab_size <= 65500) data.CountSplits();
  });
}

}  // namespace

void FuzzOne(std::string_view input) {
  Choices choices(input);
  const auto prefix = ScratchFolder() / "tokens";
  const int64_t vocab_size = choices.Pick(kVocabularies);
  if (choices.OneIn(2)) {
    WriteChanged(prefix, vocab_size, choices);
  } else {
    WriteScratch(WithSuffix(prefix, ".idx"), choices.Text(1 << 12));
    WriteScratch(WithSuffix(prefix, ".bin"), choices.Rest());
  }
  const bool accepted =
      Accepts([&] { CheckTokens(trainer::TokenFile(prefix, vocab_size)); });
  if (accepted) CheckBatches(prefix, vocab_size);
}

std::vector<std::string> Seeds() {
  // Two documents of two ids, as stored and as written.
  const auto number = [](uint64_t value, size_t bytes) {
    std::string text;
    for (size_t b = 0; b < bytes; ++b) {
      text += static_cast<char>(value >> (8 * b) & 0xff);
    }
    return text;
  };
  const std::string index =
      std::string("MMIDIDX\0\0", 9) + number(1, 8) + number(8, 1) +
      number(2, 8) + number(3, 8) + number(2, 4) + number(2, 4) + number(0, 8) +
      number(4, 8) + number(0, 8) + number(1, 8) + number(2, 8);
  std::string size;  // as Choices::Text reads it
  size += static_cast<char>(index.size() >> 8);
  size += static_cast<char>(index.size() & 0xff);
  std::string written = "\x01\x01\x0f";
  for (int i = 0; i < 200; ++i) written += static_cast<char>(i * 7 % 32);
  return {std::string("\x01\x00", 2) + size + index +
              std::string("\1\0\2\0\3\0\4\0", 8),
          std::string("\x01\x00", 2) + size + index + std::string(8, '\xff'),
          written, std::string("\x03\x01\x00\x01\x00\x00", 6),
          std::string("\x04\x01\x02\x03\x01\x02\x03\x02\x01\x02", 10)};
}

}  // namespace softmoe::fuzz
