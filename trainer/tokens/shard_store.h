// SPDX-License-Identifier: Apache-2.0
//
// shard_store.h - the tokens of a corpus while they are made, so that a killed
// process loses only the shards in progress.
//
// Shards are encoded in any order, each into files of its own, and then
// appended in the order of the corpus; the first file becomes tokens.bin. In
// the folder:
//   tokens.bin      the ids of the shards that were appended
//   lengths         tokens of each of their documents, int32
//   documents       the first eight bytes of each document's SHA-256
//   appended.jsonl  their ShardRecords, a line each
//   shards/N.bin    the ids of shard N, which is not appended yet
//   shards/N.rest   its ShardRecord, a line, then its lengths and documents
// After a kill or a crash of the machine, data counts only as far as the hashes
// of its tokens are right and its lengths add up to their number.
#ifndef SOFTMOE_TRAINER_TOKENS_SHARD_STORE_H_
#define SOFTMOE_TRAINER_TOKENS_SHARD_STORE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/input_file.h"
#include "core/files/sha256.h"
#include "trainer/tokens/manifest.h"

namespace softmoe::trainer {

// Writes one shard; it is in the store after Commit. One thread at a time.
class ShardWriter {
 public:
  ShardWriter(const std::filesystem::path& folder, int64_t shard,
              int64_t vocab_size);

  // ids in [0, vocab_size), fewer than 2^31; the last one ends the document.
  void AddDocument(std::string_view text, std::span<const int32_t> ids);

  // `about` must have name, digest, sha256, bytes, empty, bad and first.
  void Commit(ShardRecord about);

 private:
  std::filesystem::path prefix_;
  int64_t vocab_size_;
  AtomicFile tokens_;
  std::vector<uint16_t> short_ids_;
  std::vector<int32_t> lengths_;
  std::vector<uint64_t> documents_;
  int64_t text_bytes_ = 0, num_tokens_ = 0;
  Sha256 tokens_hash_, text_hash_;
  DigestSum sum_;
};

// Returns how many of the 64-bit numbers in `file` equal an earlier one. Sorts
// about `sorted` of them at a time, or a third of them if that is more.
int64_t CountRepeated(const InputFile& file, int64_t sorted = int64_t{1} << 22);

class ShardStore {
 public:
  // Opens the store in `folder`, which no other process may use. Keeps the
  // shards that were appended earlier, in order, up to the first that `is_kept`
  // rejects or that is not whole. Throws EnvironmentError.
  ShardStore(
      std::filesystem::path folder, int64_t vocab_size,
      const std::function<bool(const ShardRecord&)>& is_kept =
          [](const ShardRecord&) { return true; });
  ~ShardStore();

  const std::filesystem::path& folder() const { return folder_; }
  // The shards that were appended, in order.
  const std::vector<ShardRecord>& appended() const { return appended_; }

  // Whether `shard` was encoded from this content and, unless `with_bad`,
  // without leaving out a bad document. From any thread.
  bool Has(int64_t shard, const std::string& digest,
           bool with_bad = true) const;
  // Whether anything would be lost with the folder.
  bool HasWork() const;
  // Appends the next shard, which must have been encoded.
  void AppendNext();

  // Writes PREFIX.bin, .idx and .manifest; `prefix` must be in the same file
  // system. Opened again, the store is empty. Throws EnvironmentError;
  // DataError if the lengths were damaged meanwhile: opened again, the store
  // has what is whole.
  struct Result {
    Manifest manifest;
    std::string tokens_sha256, index_sha256;
  };
  Result Finish(const std::filesystem::path& prefix);

 private:
  class AppendedFile;

  void ReadAppended();
  void Keep(const std::function<bool(const ShardRecord&)>& is_kept);

  std::filesystem::path folder_;
  int64_t vocab_size_;
  std::unique_ptr<AppendedFile> tokens_, lengths_, documents_, records_;
  std::vector<ShardRecord> appended_;
  Sha256 tokens_hash_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_SHARD_STORE_H_
