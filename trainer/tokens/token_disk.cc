// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_disk.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "core/text/text_table.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

// Size, place and boundary of a document of one sequence in PREFIX.idx.
constexpr int64_t kIndexBytesOfDocument = 4 + 8 + 8;

// SentencePiece tokens of a vocabulary of this size: Llama's tokenizer makes
// 198e9 of the 790 GB of C4.
constexpr int64_t kPaperVocabSize = 32000;
constexpr double kPaperBytesPerToken = 4;

}  // namespace

TokenDisk DiskForTokens(int64_t text_bytes, double bytes_per_token,
                        int64_t documents, int64_t vocab_size) {
  const double tokens = static_cast<double>(text_bytes) / bytes_per_token +
                        static_cast<double>(documents);
  TokenDisk disk;
  disk.tokens = static_cast<int64_t>(
      tokens * static_cast<double>(TokenBytes(TokenTypeFor(vocab_size))));
  disk.index = kIndexBytesOfDocument * documents;
  // Lengths and hashes of documents; shards that wait to be appended; and how
  // far the rest may deviate from the sample.
  disk.work = 12 * documents + disk.tokens / 10 + (16 << 20);
  return disk;
}

std::optional<TokenDisk> ExpectedDisk(const DataConfig& data,
                                      int64_t vocab_size,
                                      const CorpusSize& size) {
  if (size.text_bytes == 0) return std::nullopt;
  double share = 1;
  if (data.max_bytes != 0) {
    share = std::min(1.0, static_cast<double>(data.max_bytes) /
                              static_cast<double>(size.text_bytes));
  }
  const auto part = [share](int64_t whole) {
    return static_cast<int64_t>(share * static_cast<double>(whole));
  };
  const bool known = size.documents > 0 && vocab_size >= kPaperVocabSize;
  TokenDisk disk =
      DiskForTokens(part(size.text_bytes), known ? kPaperBytesPerToken : 1,
                    part(size.documents), vocab_size);
  disk.at_most = !known;
  return disk;
}

std::string Describe(const std::optional<TokenDisk>& disk) {
  if (!disk) return "an amount that only the first shards will show";
  std::string text =
      fmt::format("{} {} of tokens", disk->at_most ? "at most" : "about",
                  FormatBytes(disk->tokens));
  if (disk->index > 0) {
    text += fmt::format(" and {} of index", FormatBytes(disk->index));
  }
  return text;
}

}  // namespace softmoe::trainer
