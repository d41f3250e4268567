// SPDX-License-Identifier: Apache-2.0
//
// token_memory.h - what this machine remembers of token files that it has read
// whole: their hashes, and how often each id occurs.
//
// C4's tokens are 400 GB, and every run needs their hash when it begins and
// their counts when it ends. CACHE/checked/NAME/facts.json keeps both for one
// prefix. It is valid as long as the files there keep their sizes, inodes and
// times: the time of their content, which `cp -p` and others set back, and the
// time of any change (a new hard link or owner, too), which only the system
// sets. Without a cache folder, nothing is remembered, and the files are read
// again.
#ifndef SOFTMOE_TRAINER_TOKENS_TOKEN_MEMORY_H_
#define SOFTMOE_TRAINER_TOKENS_TOKEN_MEMORY_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe::trainer {

// A file with the same numbers is taken to have the same content.
struct FileStamp {
  int64_t bytes = 0;
  int64_t inode = 0;
  // ns since 1970.
  int64_t modified = 0;  // st_mtim
  int64_t changed = 0;   // st_ctim
  bool operator==(const FileStamp&) const = default;
};

struct TokenFacts {
  FileStamp data, index;  // of PREFIX.bin and PREFIX.idx
  std::string data_sha256, index_sha256;
  // How often ids 0, 1, 2, ... occur in PREFIX.bin; shorter than the vocabulary
  // if its last ids do not occur. Empty if some id is negative or 2^20 or more.
  std::vector<int64_t> counts;
  // [first]: such counts of the tokens from position `first` to the end.
  std::map<int64_t, std::vector<int64_t>> counts_from = {};
  bool operator==(const TokenFacts&) const = default;
};

// A file that changes twice within one tick of its file system's clock keeps
// its times, so files that have changed this recently are not remembered.
inline constexpr int64_t kFileTickNs = 2'000'000'000;

// Convert to the text of facts.json and back; nullopt for anything else.
std::string TokenFactsText(const TokenFacts& facts);
std::optional<TokenFacts> ParseTokenFacts(std::string_view text);

// Returns the facts of PREFIX.bin and PREFIX.idx: remembered ones or, once for
// each machine, from reading both files whole, while other processes that ask
// for them wait, and say so on stderr after a second. Does not check the
// structure (token_file.h). Throws EnvironmentError if a file is missing or
// cannot be read, StoppedError after a signal during the wait.
//   tick_ns  files that changed within this time are not remembered
TokenFacts CheckTokens(const std::filesystem::path& prefix,
                       int64_t tick_ns = kFileTickNs);

// Returns the remembered facts, or nullopt if there are none for these files.
std::optional<TokenFacts> RecallTokens(const std::filesystem::path& prefix);

// Adds counts_from[first] to what is remembered, if the files still are what
// `facts` was recalled from.
void RememberCounts(const std::filesystem::path& prefix, TokenFacts facts,
                    int64_t first, const std::vector<int64_t>& counts);

// Forgets all token files of this machine.
void ForgetTokens();

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKEN_MEMORY_H_
