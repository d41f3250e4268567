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
  int64_t work = 0;               // extra while made, if no shard is large
  bool at_most = false;           // upper bounds: only the text's size is known
  int64_t total() const { return tokens + index + work; }
};

// For documents of `text_bytes` in all, at `bytes_per_token` of text per token.
TokenDisk DiskForTokens(int64_t text_bytes, double bytes_per_token,
                        int64_t documents, int64_t vocab_size);

// Estimates the disk for a corpus from the sizes of all its files, before any
// is read; nullopt if these say nothing, as for a user's packed files. Assumes
// tokens of 4 bytes of text for published corpora with at least the paper's
// size of vocabulary, else tokens of one byte, which is the least.
std::optional<TokenDisk> ExpectedDisk(const DataConfig& data,
                                      int64_t vocab_size,
                                      const CorpusSize& size);

// "about 368.8 GiB of tokens and 6.8 GiB of index"
std::string Describe(const std::optional<TokenDisk>& disk);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKEN_DISK_H_
