// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/manifest.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/text/ascii.h"
#include "trainer/corpora/corpus.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kManifestFormat = "softmoe manifest";
constexpr int kManifestVersion = 1;

// The one list of keys: `visit(key, field)` for each.
template <typename Record, typename Visit>
void VisitShard(Record& record, const Visit& visit) {
  visit("name", record.name);
  visit("digest", record.digest);
  visit("sha256", record.sha256);
  visit("bytes", record.bytes);
  visit("documents", record.documents);
  visit("empty", record.empty);
  visit("bad", record.bad);
  visit("text_bytes", record.text_bytes);
  visit("tokens", record.tokens);
  visit("text_sha256", record.text_sha256);
  visit("tokens_sha256", record.tokens_sha256);
  visit("documents_sum", record.documents_sum);
  visit("first", record.first);
}

[[noreturn]] void Refuse(const fs::path& path, const std::string& what) {
  throw DataError(
      fmt::format("{}: {}; {}", path.string(), what, kMakeTokensAgain));
}

std::string Lines(const std::vector<ShardRecord>& shards) {
  std::string text;
  for (const ShardRecord& shard : shards)
    text += JsonLine(ToJson(shard)) + "\n";
  return text;
}

// The last line.
Json Sums(const Manifest& manifest, const std::string& lines) {
  const ShardRecord total = Total(manifest.shards);
  return Sealed({{"format", kManifestFormat},
                 {"version", kManifestVersion},
                 {"shards", manifest.shards.size()},
                 {"bytes", total.bytes},
                 {"documents", total.documents},
                 {"empty", total.empty},
                 {"bad", total.bad},
                 {"repeated", manifest.repeated},
                 {"text_bytes", total.text_bytes},
                 {"tokens", total.tokens},
                 {"documents_sum", total.documents_sum},
                 {"lines_sha256", Sha256Hex(lines)}});
}

}  // namespace

void DigestSum::Add(const Sha256Digest& digest) {
  std::array<uint64_t, 4> words = {};
  for (size_t i = 0; i < digest.size(); ++i) {
    uint64_t& word = words[3 - i / 8];
    word = word << 8 | digest[i];
  }
  Add(words);
}

void DigestSum::Add(const DigestSum& other) { Add(other.words_); }

void DigestSum::Add(const std::array<uint64_t, 4>& words) {
  uint64_t carry = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t partial = words_[i] + carry;
    words_[i] = partial + words[i];
    carry = (partial < carry) + (words_[i] < partial);
  }
}

std::string DigestSum::Hex() const {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", words_[3], words_[2],
                     words_[1], words_[0]);
}

DigestSum ParseDigestSum(const std::string& hex) {
  DigestSum sum;
  for (size_t word = 0; word < 4 && hex.size() == 64; ++word) {
    const std::string digits = hex.substr(16 * (3 - word), 16);
    sum.words_[word] = ParseNumber<uint64_t>(digits, 16).value_or(0);
  }
  // Text that is not a hex number has become zeros.
  if (sum.Hex() != hex) {
    throw DataError("\"" + hex +
                    "\" is not a sum of digests, which has 64 hex digits");
  }
  return sum;
}

Json ToJson(const ShardRecord& record) {
  Json json = Json::object();
  VisitShard(record,
             [&](const char* key, const auto& field) { json[key] = field; });
  return json;
}

ShardRecord ParseShardRecord(const Json& json, const std::string& place) {
  ShardRecord record;
  VisitShard(record, [&](const char* key, auto& field) {
    if (!TakeField(json, key, &field)) {
      throw DataError(fmt::format("{}: \"{}\" is missing or of the wrong type",
                                  place, key));
    }
  });
  try {
    ParseDigestSum(record.documents_sum);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", place, error.what()));
  }
  // Sums over a million shards stay below 2^63.
  for (const int64_t count : {record.bytes, record.documents, record.empty,
                              record.bad, record.text_bytes, record.tokens}) {
    if (count > int64_t{1} << 40) {
      throw DataError(fmt::format("{}: a count of {}", place, count));
    }
  }
  return record;
}

ShardRecord Total(const std::vector<ShardRecord>& shards) {
  ShardRecord total;
  DigestSum sum;
  std::string texts;
  Skipped skipped;
  for (const ShardRecord& shard : shards) {
    total.bytes += shard.bytes;
    total.documents += shard.documents;
    total.text_bytes += shard.text_bytes;
    total.tokens += shard.tokens;
    texts += shard.text_sha256 + "\n";
    skipped.Add({shard.empty, shard.bad, shard.first});
    sum.Add(ParseDigestSum(shard.documents_sum));
  }
  total.empty = skipped.empty;
  total.bad = skipped.bad;
  total.first = skipped.first;
  total.documents_sum = sum.Hex();
  total.text_sha256 =
      shards.size() == 1 ? shards[0].text_sha256 : Sha256Hex(texts);
  return total;
}

void WriteManifest(const fs::path& path, const Manifest& manifest) {
  const std::string lines = Lines(manifest.shards);
  WriteFileAtomically(path, lines + JsonLine(Sums(manifest, lines)) + "\n");
}

Manifest ReadManifest(const fs::path& path) {
  const std::vector<Json> lines = ReadJsonLines(path);
  if (lines.empty() ||
      lines.back().value("format", Json()) != kManifestFormat) {
    Refuse(path,
           "its last line is not that of a manifest: truncated, or "
           "another file");
  }
  const Json& sums = lines.back();
  if (sums.value("version", Json()) != kManifestVersion) {
    Refuse(path, fmt::format("of another version, only {} is known",
                             kManifestVersion));
  }
  Manifest manifest;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    manifest.shards.push_back(
        ParseShardRecord(lines[i], fmt::format("{}:{}", path.string(), i + 1)));
  }
  TakeField(sums, "repeated", &manifest.repeated);
  if (sums != Sums(manifest, Lines(manifest.shards))) {
    Refuse(
        path,
        "damaged, or changed by hand: its last line does not match the others");
  }
  return manifest;
}

}  // namespace softmoe::trainer
