// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_memory.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/input_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/process/stop_signal.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Counts = std::vector<int64_t>;

constexpr const char* kFactsFormat = "softmoe checked tokens";
constexpr int kFactsVersion = 2;
constexpr const char* kFacts = "facts.json";
constexpr int64_t kMostIds = 1 << 20;

fs::path MemoryFolder() { return CacheFolder() / "checked"; }

fs::path FolderOf(const fs::path& prefix) {
  return MemoryFolder() /
         Sha256Hex(fs::absolute(prefix).lexically_normal().string())
             .substr(0, 32);
}

// Clamped to 1678 to 2262: a file system may hold times of other centuries.
int64_t Ns(const timespec& time) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kLast = INT64_MAX / kSecond - 1;
  return std::clamp<int64_t>(time.tv_sec, -kLast, kLast) * kSecond +
         time.tv_nsec;
}

std::optional<FileStamp> StampOf(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileStamp{.bytes = status.st_size,
                   .inode = static_cast<int64_t>(status.st_ino),
                   .modified = Ns(status.st_mtim),
                   .changed = Ns(status.st_ctim)};
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Whether PREFIX.bin and PREFIX.idx are those of `facts`.
bool AreThose(const fs::path& prefix, const TokenFacts& facts) {
  return StampOf(WithSuffix(prefix, ".bin")) == facts.data &&
         StampOf(WithSuffix(prefix, ".idx")) == facts.index;
}

Json StampJson(const FileStamp& stamp) {
  return {stamp.bytes, stamp.inode, stamp.modified, stamp.changed};
}

FileStamp ParseStamp(const Json& json) {
  return {json.at(0).get<int64_t>(), json.at(1).get<int64_t>(),
          json.at(2).get<int64_t>(), json.at(3).get<int64_t>()};
}

// Bytes per token by the header of PREFIX.idx, which TokenFile checks.
int64_t BytesOfToken(const fs::path& index) {
  const InputFile file(index);
  if (file.size() <= kTokenTypeAt) return TokenBytes(kTokenUint16);
  uint8_t type = 0;
  file.Read(kTokenTypeAt, 1, &type);
  return TokenBytes(type);
}

// One pass for the hash and the counts of PREFIX.bin, whose ids are of type Id.
template <typename Id>
void ReadData(const InputFile& file, TokenFacts* facts) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(Id));
  Sha256 hash;
  std::vector<Id> block(size_t{1} << 19);
  Counts counts(kMostIds);
  bool all_counted = true;
  for (int64_t begin = 0; begin < file.size();) {
    const int64_t bytes =
        std::min(kSize * std::ssize(block), file.size() - begin);
    file.Read(begin, bytes, block.data());
    hash.Update(block.data(), static_cast<size_t>(bytes));
    for (int64_t i = 0; i < bytes / kSize; ++i) {
      const Id id = block[static_cast<size_t>(i)];
      const bool counted =
          std::cmp_greater_equal(id, 0) && std::cmp_less(id, kMostIds);
      all_counted &= counted;
      if (counted) ++counts[static_cast<size_t>(id)];
    }
    begin += bytes;
  }
  facts->data_sha256 = Sha256Hex(hash.Finish());
  if (!all_counted) return;
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  facts->counts = std::move(counts);
}

// Does nothing if there is no cache folder, or no room in it.
void Remember(const fs::path& prefix, const TokenFacts& facts) {
  try {
    MakeFolder(FolderOf(prefix));
    WriteFileAtomically(FolderOf(prefix) / kFacts, TokenFactsText(facts));
  } catch (const EnvironmentError&) {
  }
}

std::unique_ptr<FolderLock> LockMemory(const fs::path& prefix) {
  std::optional<StopSignal> stop;  // once this waits
  const auto stop_if_asked = [&] {
    if (!stop) return;
    stop->ThrowIfRequested("before " + prefix.string() +
                           ".* were read; the same command begins again");
  };
  try {
    MakeFolder(FolderOf(prefix));
    // Says so only after a second, by which time small files have been read.
    const auto waiting = [&, asked = 0](const LockHolder& holder) mutable {
      if (!stop) stop.emplace();
      stop_if_asked();
      if (++asked != 5) return;
      std::cerr << "waiting for " + Describe(holder) + ", which reads " +
                       prefix.string() + ".*\n";
    };
    auto lock = WaitForFolder(FolderOf(prefix), waiting);
    stop_if_asked();  // a signal since the last check
    return lock;
  } catch (const EnvironmentError&) {
    stop_if_asked();
    return nullptr;
  }
}

}  // namespace

std::string TokenFactsText(const TokenFacts& facts) {
  Json from = Json::object();
  for (const auto& [first, counts] : facts.counts_from) {
    from[std::to_string(first)] = counts;
  }
  return Sealed({{"format", kFactsFormat},
                 {"version", kFactsVersion},
                 {"data", StampJson(facts.data)},
                 {"index", StampJson(facts.index)},
                 {"data_sha256", facts.data_sha256},
                 {"index_sha256", facts.index_sha256},
                 {"counts", facts.counts},
                 {"counts_from", from}})
             .dump() +
         "\n";
}

std::optional<TokenFacts> ParseTokenFacts(std::string_view text) {
  const Json json = ParseJsonObject(text);
  if (!IsSealed(json)) return std::nullopt;
  try {
    if (json.at("format") != kFactsFormat ||
        json.at("version") != kFactsVersion) {
      return std::nullopt;
    }
    TokenFacts facts = {.data = ParseStamp(json.at("data")),
                        .index = ParseStamp(json.at("index")),
                        .data_sha256 = json.at("data_sha256"),
                        .index_sha256 = json.at("index_sha256"),
                        .counts = json.at("counts")};
    for (const auto& [first, counts] : json.at("counts_from").items()) {
      facts.counts_from[std::stoll(first)] = counts.get<Counts>();
    }
    return facts;
  } catch (const std::exception&) {  // sealed, but of another kind
    return std::nullopt;
  }
}

std::optional<TokenFacts> RecallTokens(const fs::path& prefix) {
  try {
    auto facts = ParseTokenFacts(ReadWholeFile(FolderOf(prefix) / kFacts));
    if (facts && AreThose(prefix, *facts)) return facts;
  } catch (const EnvironmentError&) {  // nothing is remembered
  }
  return std::nullopt;
}

TokenFacts CheckTokens(const fs::path& prefix, int64_t tick_ns) {
  if (auto facts = RecallTokens(prefix)) return *std::move(facts);
  const auto lock = LockMemory(prefix);
  // Another process may have read them meanwhile.
  if (auto facts = RecallTokens(prefix)) return *std::move(facts);
  const int64_t begin = NowNs();
  TokenFacts facts;
  const auto index = StampOf(WithSuffix(prefix, ".idx"));
  const auto data = StampOf(WithSuffix(prefix, ".bin"));
  const InputFile file(WithSuffix(prefix, ".bin"));
  facts.index_sha256 = Sha256OfFile(WithSuffix(prefix, ".idx"));
  if (BytesOfToken(WithSuffix(prefix, ".idx")) == 2) {
    ReadData<uint16_t>(file, &facts);
  } else {
    ReadData<int32_t>(file, &facts);
  }
  facts.index = index.value_or(FileStamp());
  facts.data = data.value_or(FileStamp());
  const int64_t last = std::max({facts.data.modified, facts.data.changed,
                                 facts.index.modified, facts.index.changed});
  if (AreThose(prefix, facts) && last < begin - tick_ns) {
    Remember(prefix, facts);
  }
  return facts;
}

void RememberCounts(const fs::path& prefix, TokenFacts facts, int64_t first,
                    const Counts& counts) {
  facts.counts_from[first] = counts;
  if (AreThose(prefix, facts)) Remember(prefix, facts);
}

void ForgetTokens() {
  std::error_code ignored;
  try {
    fs::remove_all(MemoryFolder(), ignored);
  } catch (const EnvironmentError&) {  // no cache folder is known
  }
}

}  // namespace softmoe::trainer
