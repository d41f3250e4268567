// SPDX-License-Identifier: Apache-2.0
//
// manifest.h - PREFIX.manifest: a line of JSON for each shard of a corpus, and
// a last line with their sums (TOKEN_FILES.md lists the keys).
#ifndef SOFTMOE_TRAINER_TOKENS_MANIFEST_H_
#define SOFTMOE_TRAINER_TOKENS_MANIFEST_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/files/sha256.h"

namespace softmoe::trainer {

// The sum, modulo 2^256, of SHA-256 digests as numbers (big-endian). The sum
// over the documents of a text does not depend on their order, so two forms of
// a corpus are recognized as the same; unlike an exclusive or, it does not lose
// a document that occurs twice.
class DigestSum {
 public:
  void Add(const Sha256Digest& digest);
  void Add(const DigestSum& other);
  std::string Hex() const;

 private:
  void Add(const std::array<uint64_t, 4>& words);

  friend DigestSum ParseDigestSum(const std::string& hex);
  std::array<uint64_t, 4> words_ = {};  // the lowest first
};

// Parses what DigestSum::Hex prints. Throws DataError for anything else.
DigestSum ParseDigestSum(const std::string& hex);

struct ShardRecord {
  std::string name;    // of the file, or file > member
  std::string digest;  // of the content as stored (Shard::digest)
  std::string sha256;  // of the bytes as stored; "" if not known
  int64_t bytes = 0;   // as stored
  int64_t documents = 0;
  int64_t empty = 0;  // documents without a character, left out
  int64_t bad = 0;    // left out by --on-bad=skip
  int64_t text_bytes = 0;
  int64_t tokens = 0;              // with one end of document each
  std::string text_sha256;         // of the documents, a NUL after each
  std::string tokens_sha256;       // of its part of PREFIX.bin
  std::string documents_sum;       // DigestSum over its documents
  std::vector<std::string> first;  // places and reasons of the first bad ones

  bool operator==(const ShardRecord&) const = default;
};

nlohmann::ordered_json ToJson(const ShardRecord& record);
// Throws a DataError that names `place` and the key.
ShardRecord ParseShardRecord(const nlohmann::ordered_json& json,
                             const std::string& place);

// All shards, in order. `repeated` is known only at the end.
struct Manifest {
  std::vector<ShardRecord> shards;
  int64_t repeated = 0;  // documents that equal one before them
};

// Returns the sums over the shards. `first` names at most Skipped::kNamed bad
// documents; `text_sha256` is that of a single shard, else the SHA-256 of the
// shards' text_sha256 in order, one per line.
ShardRecord Total(const std::vector<ShardRecord>& shards);

// Writes the manifest. Throws EnvironmentError.
void WriteManifest(const std::filesystem::path& path, const Manifest& manifest);

// Reads a manifest. Throws EnvironmentError if it is missing, DataError if it
// is damaged or of another version, or its sums are wrong.
Manifest ReadManifest(const std::filesystem::path& path);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_MANIFEST_H_
