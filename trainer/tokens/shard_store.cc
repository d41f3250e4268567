// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/shard_store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/files/input_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHashedAtOnce = int64_t{1} << 20;

fs::path ShardPrefix(const fs::path& folder, int64_t shard) {
  return folder / "shards" / std::to_string(shard);
}

// Calls use(bytes) for a part of a file, a block at a time.
template <typename Use>
void ForEachBlock(const InputFile& file, int64_t begin, int64_t end,
                  const Use& use) {
  std::vector<char> block(kHashedAtOnce);
  for (int64_t at = begin; at < end; at += kHashedAtOnce) {
    const int64_t count = std::min(kHashedAtOnce, end - at);
    file.Read(at, count, block.data());
    use(std::string_view(block.data(), static_cast<size_t>(count)));
  }
}

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// What N.rest says; nullopt if it is not there or not whole.
struct Rest {
  ShardRecord record;
  std::string lengths, documents;
};
std::optional<Rest> ReadRest(const fs::path& prefix) {
  const fs::path path = WithSuffix(prefix, ".rest");
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const std::string text = ReadWholeFile(path);
  const size_t line = text.find('\n');
  if (line == std::string::npos) return std::nullopt;
  try {
    Rest rest;
    rest.record =
        ParseShardRecord(ParseJsonObject(text.substr(0, line)), path.string());
    const auto documents = static_cast<size_t>(rest.record.documents);
    if (text.size() - line - 1 != 12 * documents) return std::nullopt;
    rest.lengths = text.substr(line + 1, 4 * documents);
    rest.documents = text.substr(line + 1 + 4 * documents);
    return rest;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// The sum of the lengths [begin, end) in `file`.
int64_t SumLengths(const InputFile& file, int64_t begin, int64_t end) {
  int64_t sum = 0;
  ForEachBlock(file, 4 * begin, 4 * end, [&](std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += 4) {
      int32_t length;
      std::memcpy(&length, bytes.data() + at, 4);
      sum += length;
    }
  });
  return sum;
}

}  // namespace

// Sorts many numbers in parts, in less memory than the lengths of all documents
// take, which Finish holds next: of C4's 3 GB of numbers, a third at a time.
int64_t CountRepeated(const InputFile& file, int64_t sorted) {
  constexpr int64_t kMostParts = 3;
  const int64_t count = file.size() / 8;
  const auto parts =
      static_cast<uint64_t>(std::min(count / sorted + 1, kMostParts));
  int64_t repeated = 0;
  for (uint64_t part = 0; part < parts; ++part) {
    std::vector<uint64_t> numbers;
    numbers.reserve(static_cast<size_t>(count) / parts * 17 / 16);
    ForEachBlock(file, 0, 8 * count, [&](std::string_view bytes) {
      for (size_t at = 0; at < bytes.size(); at += 8) {
        uint64_t number;
        std::memcpy(&number, bytes.data() + at, 8);
        if (number % parts == part) numbers.push_back(number);
      }
    });
    std::sort(numbers.begin(), numbers.end());
    const auto distinct = std::unique(numbers.begin(), numbers.end());
    repeated += numbers.end() - distinct;
  }
  return repeated;
}

ShardWriter::ShardWriter(const fs::path& folder, int64_t shard,
                         int64_t vocab_size)
    : prefix_(ShardPrefix(folder, shard)),
      vocab_size_(vocab_size),
      tokens_(WithSuffix(prefix_, ".bin")) {}

void ShardWriter::AddDocument(std::string_view text,
                              std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    SOFTMOE_CHECK(id >= 0 && id < vocab_size_) << "id=" << id;
  }
  std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                         ids.size_bytes());
  if (TokenTypeFor(vocab_size_) == kTokenUint16) {
    short_ids_.assign(ids.begin(), ids.end());
    bytes = BytesOf(short_ids_);
  }
  tokens_.Write(bytes);
  tokens_hash_.Update(bytes);
  lengths_.push_back(static_cast<int32_t>(ids.size()));
  num_tokens_ += static_cast<int64_t>(ids.size());
  Sha256 hash;
  hash.Update(text);
  const Sha256Digest digest = hash.Finish();
  sum_.Add(digest);
  uint64_t first;
  std::memcpy(&first, digest.data(), sizeof(first));
  documents_.push_back(first);
  text_hash_.Update(text);
  text_hash_.Update("\0", 1);
  text_bytes_ += static_cast<int64_t>(text.size());
}

void ShardWriter::Commit(ShardRecord about) {
  about.documents = static_cast<int64_t>(lengths_.size());
  about.text_bytes = text_bytes_;
  about.tokens = num_tokens_;
  about.text_sha256 = Sha256Hex(text_hash_.Finish());
  about.tokens_sha256 = Sha256Hex(tokens_hash_.Finish());
  about.documents_sum = sum_.Hex();
  tokens_.Commit();
  WriteFileAtomically(WithSuffix(prefix_, ".rest"),
                      fmt::format("{}\n{}{}", JsonLine(ToJson(about)),
                                  BytesOf(lengths_), BytesOf(documents_)));
}

// A file that can be appended to and cut.
class ShardStore::AppendedFile {
 public:
  explicit AppendedFile(fs::path path)
      : path_(std::move(path)),
        descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw FileError("write", path_, errno);
  }
  ~AppendedFile() { ::close(descriptor_); }

  const fs::path& path() const { return path_; }
  int64_t size() const { return size_; }
  // Discards what lies beyond `size` bytes, which the file must have.
  void Cut(int64_t size) {
    if (::ftruncate(descriptor_, size) != 0)
      throw FileError("write", path_, errno);
    size_ = size;
  }
  void Write(std::string_view bytes) {
    if (const int error = WriteAll(descriptor_, bytes, size_)) {
      throw FileError("write", path_, error);
    }
    size_ += std::ssize(bytes);
  }
  void Sync() {
    if (::fsync(descriptor_) != 0) throw FileError("write", path_, errno);
  }

 private:
  fs::path path_;
  int descriptor_;
  int64_t size_ = 0;
};

ShardStore::ShardStore(fs::path folder, int64_t vocab_size,
                       const std::function<bool(const ShardRecord&)>& is_kept)
    : folder_(std::move(folder)), vocab_size_(vocab_size) {
  MakeFolder(folder_ / "shards");
  // Removes what killed writers left.
  for (const auto& entry : fs::directory_iterator(folder_ / "shards")) {
    std::error_code ignored;
    if (TemporaryFileOwner(entry.path().filename().string()) != 0) {
      fs::remove(entry.path(), ignored);
    }
  }
  ReadAppended();
  Keep(is_kept);
}

ShardStore::~ShardStore() = default;

void ShardStore::ReadAppended() {
  const fs::path path = folder_ / "appended.jsonl";
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const std::string text = ReadWholeFile(path);
  // Reading stops at a torn line, and at one of another version.
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos;
       begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    try {
      appended_.push_back(
          ParseShardRecord(ParseJsonObject(line), path.string()));
    } catch (const DataError&) {
      return;
    }
    if (JsonLine(ToJson(appended_.back())) == line) continue;
    appended_.pop_back();
    return;
  }
}

void ShardStore::Keep(const std::function<bool(const ShardRecord&)>& is_kept) {
  tokens_ = std::make_unique<AppendedFile>(folder_ / "tokens.bin");
  lengths_ = std::make_unique<AppendedFile>(folder_ / "lengths");
  documents_ = std::make_unique<AppendedFile>(folder_ / "documents");
  records_ = std::make_unique<AppendedFile>(folder_ / "appended.jsonl");
  const InputFile tokens(tokens_->path());
  const InputFile lengths(lengths_->path());
  const InputFile documents(documents_->path());
  const int64_t token_bytes = TokenBytes(TokenTypeFor(vocab_size_));
  int64_t num_tokens = 0, num_documents = 0;
  int64_t record_bytes = 0;
  size_t kept = 0;
  for (; kept < appended_.size(); ++kept) {
    const ShardRecord& shard = appended_[kept];
    const int64_t begin = num_tokens * token_bytes;
    const int64_t end = begin + shard.tokens * token_bytes;
    const int64_t last = num_documents + shard.documents;
    if (!is_kept(shard) || end > tokens.size() || 4 * last > lengths.size() ||
        8 * last > documents.size() ||
        SumLengths(lengths, num_documents, last) != shard.tokens) {
      break;
    }
    Sha256 hash;
    ForEachBlock(tokens, begin, end, [&](std::string_view bytes) {
      hash.Update(bytes);
      tokens_hash_.Update(bytes);
    });
    if (Sha256Hex(hash.Finish()) != shard.tokens_sha256) {
      tokens_hash_.Finish();
      ForEachBlock(tokens, 0, begin,
                   [&](std::string_view bytes) { tokens_hash_.Update(bytes); });
      break;
    }
    num_tokens += shard.tokens;
    num_documents = last;
    record_bytes += static_cast<int64_t>(JsonLine(ToJson(shard)).size()) + 1;
  }
  appended_.resize(kept);
  tokens_->Cut(num_tokens * token_bytes);
  lengths_->Cut(4 * num_documents);
  documents_->Cut(8 * num_documents);
  records_->Cut(record_bytes);
}

bool ShardStore::Has(int64_t shard, const std::string& digest,
                     bool with_bad) const {
  const fs::path prefix = ShardPrefix(folder_, shard);
  const auto rest = ReadRest(prefix);
  std::error_code error;
  return rest && rest->record.digest == digest &&
         (with_bad || rest->record.bad == 0) &&
         fs::exists(WithSuffix(prefix, ".bin"), error) &&
         Sha256OfFile(WithSuffix(prefix, ".bin")) == rest->record.tokens_sha256;
}

bool ShardStore::HasWork() const {
  if (!appended_.empty()) return true;
  const auto shards = fs::directory_iterator(folder_ / "shards");
  return std::any_of(begin(shards), end(shards), [](const auto& entry) {
    return entry.path().extension() == ".rest";
  });
}

void ShardStore::AppendNext() {
  const fs::path prefix =
      ShardPrefix(folder_, static_cast<int64_t>(appended_.size()));
  const auto rest = ReadRest(prefix);
  SOFTMOE_CHECK(rest) << prefix << " is gone";
  const fs::path shard = WithSuffix(prefix, ".bin");
  const bool is_first = tokens_->size() == 0;
  {
    const InputFile tokens(shard);
    ForEachBlock(tokens, 0, tokens.size(), [&](std::string_view bytes) {
      if (!is_first) tokens_->Write(bytes);
      tokens_hash_.Update(bytes);
    });
  }
  lengths_->Write(rest->lengths);
  documents_->Write(rest->documents);
  // Keep compares only their sizes and a sum; tokens have a hash.
  lengths_->Sync();
  documents_->Sync();
  // The record comes last: what has none is cut when the store is opened again.
  records_->Write(JsonLine(ToJson(rest->record)) + "\n");
  if (is_first) {
    // The copy of an only shard would take its disk twice. The record comes
    // first: without its tokens it is cut, too, and the shard is still here.
    std::error_code error;
    fs::rename(shard, tokens_->path(), error);
    if (error) throw FileError("write", tokens_->path(), error.value());
    tokens_ = std::make_unique<AppendedFile>(tokens_->path());
    tokens_->Cut(rest->record.tokens * TokenBytes(TokenTypeFor(vocab_size_)));
  }
  appended_.push_back(rest->record);
  for (const char* suffix : {".rest", ".bin"}) {
    std::error_code ignored;
    fs::remove(WithSuffix(prefix, suffix), ignored);
  }
}

ShardStore::Result ShardStore::Finish(const fs::path& prefix) {
  const InputFile lengths_file(lengths_->path());
  const int64_t token_bytes = TokenBytes(TokenTypeFor(vocab_size_));
  const int64_t sum = SumLengths(lengths_file, 0, lengths_->size() / 4);
  if (sum * token_bytes != tokens_->size()) {
    throw DataError(fmt::format(
        "{}: damaged: the lengths of documents add up to {} tokens, but {} "
        "were written; the same command continues with the shards that are "
        "whole",
        lengths_->path().string(), sum, tokens_->size() / token_bytes));
  }
  Result result;
  result.manifest.shards = appended_;
  result.manifest.repeated = CountRepeated(InputFile(documents_->path()));
  result.tokens_sha256 = Sha256Hex(tokens_hash_.Finish());
  tokens_->Sync();
  std::vector<int32_t> lengths(static_cast<size_t>(lengths_->size()) / 4);
  lengths_file.Read(0, lengths_->size(), lengths.data());
  result.index_sha256 =
      WriteTokenIndex(WithSuffix(prefix, ".idx"), vocab_size_, lengths);
  WriteManifest(WithSuffix(prefix, ".manifest"), result.manifest);
  std::error_code error;
  fs::rename(tokens_->path(), WithSuffix(prefix, ".bin"), error);
  if (error) {
    throw FileError("write", WithSuffix(prefix, ".bin"), error.value());
  }
  return result;
}

}  // namespace softmoe::trainer
