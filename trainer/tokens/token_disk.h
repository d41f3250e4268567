// SPDX-License-Identifier: Apache-2.0
//
// token_disk.h - how much disk the token files of a corpus take.
#ifndef SOFTMOE_TRAINER_TOKENS_TOKEN_DISK_H_
#define SOFTMOE_TRAINER_TOKENS_TOKEN_DISK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/config/config.h"
#include "trainer/corpora/corpus.h"

namespace softmoe::trainer {

// Disk that token files take, in bytes.
struct TokenDisk {
  int64_t tokens = 0, index = 0;  // PREFIX.bin, PREFIX.idx
  int64_t work = 0;               // more, while they are made, if none is large
  bool at_most = false;           // only the size of the texts is known
  int64_t total() const { return tokens + index + work; }
};

// For documents of `text_bytes` in all, where a token has `bytes_per_token`.
TokenDisk DiskForTokens(int64_t text_bytes, double bytes_per_token,
                        int64_t documents, int64_t vocab_size);

// For a corpus, from the sizes of all its files, before any is read; nullopt if
// these say nothing, as for packed files of the user's. For published corpora
// with the paper's size of vocabulary, tokens of 4 bytes are assumed, else
// tokens of one byte, which is the least.
std::optional<TokenDisk> ExpectedDisk(const DataConfig& data,
                                      int64_t vocab_size,
                                      const CorpusSize& size);

// "about 368.8 GiB of tokens and 6.8 GiB of index"
std::string Describe(const std::optional<TokenDisk>& disk);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKEN_DISK_H_
