// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/owt_corpus.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>

#include <array>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/files/input_file.h"
#include "core/files/sha256.h"
#include "trainer/corpora/packed_file.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// openwebtext.tar.xz / subset.tar / urlsf_subset.xz is the deepest known.
constexpr size_t kMaxDepth = 8;

// Two blocks of zeros end a tar; more may follow.
constexpr int64_t kTarEndBytes = 1024;

// What ShardFinder holds of a too long document is too long itself.
static_assert(kMaxMemberBytes >= kMaxDocumentBytes);

bool IsArchive(std::string_view name) {
  return name.ends_with(".xz") || name.ends_with(".tar");
}

bool IsText(std::string_view name) { return name.ends_with(".txt"); }

// Whether a member that is not read holds documents, by its name.
bool IsNearlyRead(const std::string& member) {
  const std::string name = fs::path(member).filename().string();
  return !name.starts_with('.') &&
         IsNearly(
             [](const std::string& near) {
               return IsArchive(near) || IsText(near) || IsLinesOfJson(near);
             },
             name);
}

// Whether a member names a place elsewhere instead of content. libarchive gives
// hard links no type, but those that pax stores with content are files.
bool IsLink(archive_entry* entry) {
  const auto type = ::archive_entry_filetype(entry);
  return type == AE_IFLNK || type == 0 ||
         (::archive_entry_hardlink(entry) != nullptr &&
          ::archive_entry_size(entry) == 0);
}

// Whether its members are shards, too; other archives are shards as a whole.
bool HoldsShards(std::string_view name) {
  return name.ends_with(".tar") || name.ends_with(".tar.xz");
}

// The bytes of an archive: a file, a text in memory, or a member of another
// archive.
class Bytes {
 public:
  virtual ~Bytes() = default;
  // The next bytes, valid until the next call; none at the end. Throws Error.
  virtual std::string_view Next() = 0;
  // For a file: how many bytes were used, and the SHA-256 of all at the end.
  virtual int64_t position() const { return 0; }
  virtual std::string Hash() { return ""; }
};

class FileBytes : public Bytes {
 public:
  explicit FileBytes(const fs::path& path) : file_(path) {
    RefuseForeign(file_);
    const FileForm form = FormOf(file_);
    if (form == FileForm::kGzip || form == FileForm::kZstd) {
      throw DataError(fmt::format(
          "{}: packed with gzip or zstd, but archives of OpenWebText are read "
          "only plain or packed with xz; unpack it, or repack it with xz",
          path.string()));
    }
  }
  std::string_view Next() override { return raw_.Next(); }
  int64_t position() const override { return raw_.position(); }
  std::string Hash() override { return raw_.Hash(); }

 private:
  InputFile file_;
  RawBytes raw_{file_};
};

class MemoryBytes : public Bytes {
 public:
  explicit MemoryBytes(std::shared_ptr<const std::string> bytes)
      : bytes_(std::move(bytes)) {}
  std::string_view Next() override {
    return std::exchange(given_, true) ? std::string_view() : *bytes_;
  }

 private:
  std::shared_ptr<const std::string> bytes_;
  bool given_ = false;
};

using Reader = std::unique_ptr<archive, int (*)(archive*)>;

Reader NewReader() {
  Reader reader(::archive_read_new(), ::archive_read_free);
  SOFTMOE_CHECK(reader != nullptr);
  return reader;
}

bool IsFine(int code) { return code == ARCHIVE_OK || code == ARCHIVE_WARN; }

// Unpacks bytes that may be packed with xz: libarchive's tar reader hides what
// follows the end of a packed tar.
class UnpackedBytes : public Bytes {
 public:
  explicit UnpackedBytes(Bytes* packed) : packed_(packed) {}

  // Throws DataError without a place.
  std::string_view Next() override {
    if (!begun_) Begin();
    if (ended_) return {};
    const void* bytes = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    Check(::archive_read_data_block(reader_.get(), &bytes, &size, &offset));
    return {static_cast<const char*>(bytes), ended_ ? 0 : size};
  }
  // Position in the packed bytes.
  int64_t position() const override { return position_; }

 private:
  void Begin() {
    begun_ = true;
    // Some other filters of libarchive call programs (lrzip).
    ::archive_read_support_filter_xz(reader_.get());
    ::archive_read_support_format_raw(reader_.get());
    ::archive_read_support_format_empty(reader_.get());
    archive_entry* entry = nullptr;
    Check(::archive_read_open(reader_.get(), this, nullptr, Read, nullptr));
    Check(::archive_read_next_header(reader_.get(), &entry));
  }
  void Check(int code) {
    ended_ = code == ARCHIVE_EOF;
    if (ended_ || IsFine(code)) return;
    if (unread_) std::rethrow_exception(unread_);
    throw DataError(ArchiveMessage(reader_.get()));
  }
  static la_ssize_t Read(archive* reader, void* self, const void** bytes) {
    auto* const own = static_cast<UnpackedBytes*>(self);
    return GiveToArchive(
        reader, [own] { return own->NextPacked(); }, bytes, &own->unread_);
  }
  std::string_view NextPacked() {
    const std::string_view given = packed_->Next();
    position_ += std::ssize(given);
    return given;
  }

  Bytes* packed_;
  int64_t position_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  std::exception_ptr unread_;
  Reader reader_ = NewReader();
};

class Archive {
 public:
  // `place` is for messages.
  Archive(Bytes* bytes, std::string place)
      : place_(std::move(place)), bytes_(bytes) {
    // Some other formats of libarchive decode mail.
    ::archive_read_support_format_tar(archive_.get());
    Check(::archive_read_open(archive_.get(), this, nullptr, Read, nullptr));
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // Returns the name of the next regular file; empty at the end. Refuses links
  // in place of documents and archives, as their content may be anywhere, and
  // members that hold documents by their names but are not read.
  std::string NextMember() {
    while (!ended_) {
      archive_entry* entry = nullptr;
      const int code = ::archive_read_next_header(archive_.get(), &entry);
      if (code == ARCHIVE_EOF) {
        RequireEnd();
        ended_ = true;  // libarchive would refuse to be asked again
        break;
      }
      Check(code);
      const bool is_link = IsLink(entry);
      if (!is_link && ::archive_entry_filetype(entry) != AE_IFREG) continue;
      const char* name = ::archive_entry_pathname(entry);
      if (name == nullptr || *name == '\0') {
        RefuseDamage("a file without a name follows");
      }
      member_ = name;
      const bool is_read = IsArchive(member_) || IsText(member_);
      if (!is_read && IsNearlyRead(member_)) {
        throw DataError(
            Place() +
            ": a member with this name would be ignored; documents must be "
            "*.txt, and archives of them *.tar or *.xz: repack the archive "
            "with such a name, or without this member");
      }
      if (!is_link) return member_;
      if (is_read) {
        throw DataError(Place() +
                        ": a link: pack it with tar --hard-dereference "
                        "--dereference");
      }
    }
    return "";
  }

  // Appends the current member or, if it is longer than `limit`, more than
  // `limit` bytes of its beginning; returns whether that was all of it.
  bool ReadMember(int64_t limit, std::string* content) {
    while (static_cast<int64_t>(content->size()) <= limit) {
      const std::string_view bytes = ReadBlock();
      if (bytes.empty()) return true;
      content->append(bytes);
    }
    return false;
  }
  // The member's next bytes; none at the end.
  std::string_view ReadBlock() {
    const la_ssize_t count =
        ::archive_read_data(archive_.get(), block_.data(), block_.size());
    if (count < 0) Fail();
    return {block_.data(), static_cast<size_t>(count)};
  }

  // The current member, for messages.
  std::string Place() const {
    return member_.empty() ? place_ : place_ + " > " + member_;
  }
  [[noreturn]] void RefuseDamage(const std::string& what) const {
    throw DataError(fmt::format(
        "{}: {} (damaged or truncated before byte {} of {}); download this "
        "archive again and compare its checksum",
        Place(), what, bytes_.position(), place_));
  }

 private:
  std::string_view NextBytes() {
    const std::string_view given = bytes_.Next();
    const size_t last = given.find_last_not_of('\0');
    if (last != given.npos) {
      zeros_from_ = position_ + static_cast<int64_t>(last) + 1;
    }
    position_ += std::ssize(given);
    return given;
  }
  static la_ssize_t Read(archive* reader, void* self, const void** bytes) {
    auto* const own = static_cast<Archive*>(self);
    return GiveToArchive(
        reader, [own] { return own->NextBytes(); }, bytes, &own->unread_);
  }
  // libarchive takes a tar that is cut between members, or has zeros in place
  // of a header, for a whole one, and reads nothing after that.
  void RequireEnd() {
    try {
      while (!NextBytes().empty()) continue;
    } catch (const DataError& error) {
      RefuseDamage(error.what());
    }
    const int64_t end = ::archive_read_header_position(archive_.get());
    if (zeros_from_ > end || position_ < end + kTarEndBytes) {
      RefuseDamage("a tar that does not end with two blocks of zeros");
    }
  }
  [[noreturn]] void Fail() const {
    if (unread_) std::rethrow_exception(unread_);
    RefuseDamage(ArchiveMessage(archive_.get()));
  }
  void Check(int code) const {
    if (!IsFine(code)) Fail();
  }

  std::string place_;
  std::string member_;
  UnpackedBytes bytes_;
  int64_t position_ = 0;    // bytes of the tar that were used
  int64_t zeros_from_ = 0;  // after the last byte that is not zero
  bool ended_ = false;
  std::exception_ptr unread_;
  Reader archive_ = NewReader();
  std::array<char, 1 << 16> block_;
};

class MemberBytes : public Bytes {
 public:
  explicit MemberBytes(Archive* archive) : archive_(archive) {}
  std::string_view Next() override { return archive_->ReadBlock(); }

 private:
  Archive* archive_;
};

// Archives, each a member of the one before.
class OpenArchives {
 public:
  // `outside`: how many archives the first of them lies in.
  explicit OpenArchives(size_t outside) : outside_(outside) {}
  ~OpenArchives() {
    while (!empty()) Pop();  // innermost first
  }
  bool empty() const { return open_.empty(); }
  // Depth of the innermost; 1 is a file.
  size_t depth() const { return outside_ + open_.size(); }
  bool only_first() const { return open_.size() == 1; }
  Archive& top() { return *open_.back().second; }
  void Push(std::unique_ptr<Bytes> bytes, const std::string& place) {
    auto archive = std::make_unique<Archive>(bytes.get(), place);
    open_.emplace_back(std::move(bytes), std::move(archive));
  }
  void PushMember() {
    RequireDepth();
    Push(std::make_unique<MemberBytes>(&top()), top().Place());
  }
  void Pop() {
    open_.back().second.reset();  // it uses its bytes
    open_.pop_back();
  }
  // Refuses the current member if it is an archive nested too deep.
  void RequireDepth() const {
    if (depth() < kMaxDepth) return;
    throw DataError(fmt::format(
        "{}: an archive inside {} others, but only those inside at most {} are "
        "read; unpack the outermost, and give the folder",
        open_.back().second->Place(), depth(), kMaxDepth - 1));
  }

 private:
  size_t outside_;
  std::vector<std::pair<std::unique_ptr<Bytes>, std::unique_ptr<Archive>>>
      open_;
};

// Documents that are members of archives.
class TextMembers : public DocumentSource {
 protected:
  explicit TextMembers(const ReadOptions& options) : options_(options) {}

  // Whether the member `place` is a document; counts it if it is empty or bad.
  bool IsDocument(const std::string& text, const std::string& place) {
    std::string bad;
    if (std::ssize(text) > kMaxDocumentBytes) {
      bad = fmt::format("a document of over {} bytes", kMaxDocumentBytes);
    } else if (const size_t at = FindNonText(text); at != std::string::npos) {
      bad = fmt::format("byte {} is not UTF-8 text", at);
    }
    if (!bad.empty()) {
      SkipOrThrow(options_.on_bad, fmt::format("{}: {}", place, bad));
    } else if (text.empty()) {
      ++skipped_.empty;
    }
    return bad.empty() && !text.empty();
  }

 private:
  ReadOptions options_;
};

class OwtDocuments : public TextMembers {
 public:
  OwtDocuments(std::unique_ptr<Bytes> bytes, const std::string& place,
               const ReadOptions& options, size_t outside)
      : TextMembers(options), archives_(outside), outermost_(bytes.get()) {
    archives_.Push(std::move(bytes), place);
  }

  bool Next(std::string* document) override {
    while (true) {
      Archive& archive = archives_.top();
      const std::string member = archive.NextMember();
      if (member.empty()) {
        // The outermost stays, with the count of its bytes.
        if (archives_.only_first()) return false;
        archives_.Pop();
      } else if (IsText(member)) {
        document->clear();
        archive.ReadMember(kMaxDocumentBytes, document);
        if (IsDocument(*document, archive.Place())) return true;
      } else if (IsArchive(member)) {
        archives_.PushMember();
      }
    }
  }

  int64_t input_bytes() const override { return outermost_->position(); }
  std::string sha256() override { return outermost_->Hash(); }

 private:
  OpenArchives archives_;
  Bytes* outermost_;  // of archives_
};

// A member that is a document.
class OneDocument : public TextMembers {
 public:
  OneDocument(std::shared_ptr<const std::string> text, std::string place,
              const ReadOptions& options)
      : TextMembers(options),
        text_(std::move(text)),
        place_(std::move(place)) {}
  bool Next(std::string* document) override {
    if (std::exchange(given_, true) || !IsDocument(*text_, place_)) {
      return false;
    }
    *document = *text_;
    return true;
  }

 private:
  std::shared_ptr<const std::string> text_;
  std::string place_;
  bool given_ = false;
};

class ShardFinder {
 public:
  ShardFinder(std::vector<DigestedFile> files, const ReadOptions& options)
      : files_(std::move(files)), options_(options) {}

  bool Next(Shard* shard) {
    while (true) {
      std::string member;
      if (archives_.empty()) {
        if (next_file_ == files_.size()) return false;
        const DigestedFile& file = files_[next_file_++];
        archives_.Push(std::make_unique<FileBytes>(file.path),
                       file.path.string());
        do {
          member = archives_.top().NextMember();
        } while (!member.empty() && !IsArchive(member) && !IsText(member));
        if (!IsArchive(member)) {
          archives_.Pop();
          *shard = WholeFile(file);
          return true;
        }
      } else {
        member = archives_.top().NextMember();
      }
      if (member.empty()) {
        archives_.Pop();
      } else if (HoldsShards(member)) {
        archives_.PushMember();
      } else if (IsArchive(member) || IsText(member)) {
        *shard = Member(IsText(member));
        return true;
      }
    }
  }

 private:
  Shard WholeFile(const DigestedFile& file) const {
    return {.name = file.path.filename().string(),
            .bytes = file.bytes,
            .digest = file.digest,
            .open = [path = file.path, options = options_] {
              return OpenOwt(path, options);
            }};
  }

  Shard Member(bool is_document) {
    if (!is_document) archives_.RequireDepth();
    Archive& archive = archives_.top();
    std::string content;
    const bool whole = archive.ReadMember(kMaxMemberBytes, &content);
    if (!whole && !is_document) {
      throw DataError(fmt::format(
          "{}: a member of over {} MB, which would have to be held in memory; "
          "unpack the archive that it is in, and give the folder",
          archive.Place(), kMaxMemberBytes >> 20));
    }
    Shard shard;
    shard.name = archive.Place();
    shard.bytes = std::ssize(content);
    Sha256 hash;
    hash.Update(content);
    // A document that is too long is counted as bad, and not held in memory.
    while (!whole) {
      const std::string_view more = archive.ReadBlock();
      if (more.empty()) break;
      shard.bytes += std::ssize(more);
      hash.Update(more);
    }
    shard.sha256 = shard.digest = Sha256Hex(hash.Finish());
    const auto bytes = std::make_shared<const std::string>(std::move(content));
    shard.open = [=, place = shard.name, options = options_,
                  outside =
                      archives_.depth()]() -> std::unique_ptr<DocumentSource> {
      if (is_document) {
        return std::make_unique<OneDocument>(bytes, place, options);
      }
      return std::make_unique<OwtDocuments>(
          std::make_unique<MemoryBytes>(bytes), place, options, outside);
    };
    return shard;
  }

  std::vector<DigestedFile> files_;
  ReadOptions options_;
  size_t next_file_ = 0;
  OpenArchives archives_{0};
};

}  // namespace

std::unique_ptr<DocumentSource> OpenOwt(const fs::path& path,
                                        const ReadOptions& options) {
  return std::make_unique<OwtDocuments>(std::make_unique<FileBytes>(path),
                                        path.string(), options,
                                        /*outside=*/0);
}

ShardList OwtShards(std::vector<DigestedFile> files,
                    const ReadOptions& options) {
  return [finder = std::make_shared<ShardFinder>(std::move(files), options)](
             Shard* shard) { return finder->Next(shard); };
}

}  // namespace softmoe::trainer
