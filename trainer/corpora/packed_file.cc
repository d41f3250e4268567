// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/packed_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>

#include "core/errors.h"
#include "core/text/ascii.h"

namespace softmoe::trainer {
namespace {

constexpr int64_t kBeginning = 512;

// Endings of packers, whether their files are read or not (TOKEN_FILES.md).
constexpr std::string_view kPackers[] = {"gz",  "xz", "zst",  "bz2", "zip",
                                         "lz4", "7z", "lzma", "lz",  "zstd",
                                         "br",  "z",  "gzip", "sz",  "snappy"};
constexpr std::string_view kPackedTars[] = {"tgz", "txz", "tbz2", "tbz",
                                            "tzst"};

// A number counts, too: it is the ending of a part, or of a copy.
bool IsPackersEnding(std::string_view ending) {
  return std::ranges::find(kPackers, ending) != std::end(kPackers) ||
         (!ending.empty() &&
          ending.find_first_not_of("0123456789") == ending.npos);
}

bool IsHtml(std::string_view text) {
  text.remove_prefix(
      std::min(text.find_first_not_of(" \t\r\n\xEF\xBB\xBF"), text.size()));
  const std::string lower = LowerCase(text.substr(0, 14));
  return lower.starts_with("<!doctype html") || lower.starts_with("<html");
}

// What other packers (pzstd) put before the frames that zstd reads: any of the
// numbers 0x184D2A50 to 0x184D2A5F, the lowest byte first.
bool IsSkippableFrame(std::string_view beginning) {
  return beginning.size() >= 4 && (beginning[0] & 0xF0) == 0x50 &&
         beginning.substr(1, 3) == "\x2A\x4D\x18";
}

const char* Name(FileForm form) {
  switch (form) {
    case FileForm::kGzip:
      return "gzip";
    case FileForm::kXz:
      return "xz";
    case FileForm::kZstd:
      return "zstd";
    default:
      return "plain";
  }
}

[[noreturn]] void RefuseForm(const InputFile& file, const char* what) {
  throw DataError(fmt::format("{}: {}", file.path().string(), what));
}

[[noreturn]] void RefuseDamage(const RawBytes& raw, FileForm form, int64_t at,
                               const std::string& where,
                               const std::string& reason) {
  throw DataError(fmt::format(
      "{}: damaged or truncated {} data {} byte {} of {}{} ({}); download this "
      "file again and compare its checksum",
      raw.file().path().string(), Name(form),
      form == FileForm::kGzip ? "at" : "before", at, raw.file().size(), where,
      reason));
}

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Writes at most `size` bytes and returns how many; 0 at the end.
  virtual int64_t Read(char* out, int64_t size) = 0;
  virtual int64_t position() const = 0;
};

class PlainDecoder : public Decoder {
 public:
  explicit PlainDecoder(RawBytes* raw) : raw_(raw) {}
  int64_t Read(char* out, int64_t size) override {
    if (rest_.empty()) rest_ = raw_->Next();
    const auto count = std::min(static_cast<size_t>(size), rest_.size());
    std::copy_n(rest_.data(), count, out);
    rest_.remove_prefix(count);
    return static_cast<int64_t>(count);
  }
  int64_t position() const override {
    return raw_->position() - static_cast<int64_t>(rest_.size());
  }

 private:
  RawBytes* raw_;
  std::string_view rest_;
};

// Decodes with zlib: libarchive 3.6 compares neither the checksum nor the
// length that end a member.
class GzipDecoder : public Decoder {
 public:
  explicit GzipDecoder(RawBytes* raw) : raw_(raw) {
    SOFTMOE_CHECK(::inflateInit2(&stream_, 15 + 16) == Z_OK);
  }
  ~GzipDecoder() override { ::inflateEnd(&stream_); }

  int64_t Read(char* out, int64_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == static_cast<uInt>(size)) {
      if (stream_.avail_in == 0) {
        const std::string_view bytes = raw_->Next();
        stream_.next_in =
            reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        stream_.avail_in = static_cast<uInt>(bytes.size());
        if (bytes.empty() && !in_member_) return 0;
        if (bytes.empty()) Refuse("it ends in the middle of a member");
      }
      if (!in_member_ && member_ > 0) SkipPadding();
      if (stream_.avail_in == 0) continue;
      if (!in_member_) {
        SOFTMOE_CHECK(::inflateReset(&stream_) == Z_OK);
        in_member_ = true;
        ++member_;
      }
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        in_member_ = false;
      } else if (code != Z_OK) {
        Refuse(stream_.msg != nullptr ? stream_.msg : "no gzip header");
      }
    }
    return size - static_cast<int64_t>(stream_.avail_out);
  }
  int64_t position() const override {
    return raw_->position() - static_cast<int64_t>(stream_.avail_in);
  }

 private:
  // Skips zeros that fill the last block of a tape or disk, as gzip does.
  void SkipPadding() {
    for (; stream_.avail_in > 0 && *stream_.next_in == 0; --stream_.avail_in) {
      ++stream_.next_in;
      padded_ = true;
    }
    if (padded_ && stream_.avail_in > 0) Refuse("other bytes after zeros");
  }
  [[noreturn]] void Refuse(const char* reason) const {
    RefuseDamage(*raw_, FileForm::kGzip, position(),
                 fmt::format(", in member {}", member_), reason);
  }

  RawBytes* raw_;
  z_stream stream_{};
  bool in_member_ = false;
  bool padded_ = false;  // zeros have followed the last member
  int64_t member_ = 0;
};

class ArchiveDecoder : public Decoder {
 public:
  ArchiveDecoder(RawBytes* raw, FileForm form) : raw_(raw), form_(form) {
    SOFTMOE_CHECK(archive_ != nullptr);
    // Some other filters of libarchive call programs.
    if (form == FileForm::kXz) {
      ::archive_read_support_filter_xz(archive_.get());
    } else {
      ::archive_read_support_filter_zstd(archive_.get());
    }
    ::archive_read_support_format_raw(archive_.get());
    ::archive_read_support_format_empty(archive_.get());
    archive_entry* entry = nullptr;
    Check(::archive_read_open(archive_.get(), this, nullptr, Next, nullptr));
    const int code = ::archive_read_next_header(archive_.get(), &entry);
    if (code == ARCHIVE_EOF) {
      empty_ = true;
    } else {
      Check(code);
    }
    // Without a filter the packed bytes themselves would be the text.
    if (::archive_filter_count(archive_.get()) < 2) Refuse("no such header");
  }

  int64_t Read(char* out, int64_t size) override {
    if (empty_) return 0;
    const la_ssize_t count =
        ::archive_read_data(archive_.get(), out, static_cast<size_t>(size));
    if (count < 0) Refuse(Message());
    return count;
  }
  int64_t position() const override { return raw_->position(); }

 private:
  static la_ssize_t Next(archive* reader, void* self, const void** bytes) {
    auto* const own = static_cast<ArchiveDecoder*>(self);
    return GiveToArchive(
        reader, [own] { return own->raw_->Next(); }, bytes, &own->unread_);
  }
  std::string Message() const { return ArchiveMessage(archive_.get()); }
  [[noreturn]] void Refuse(const std::string& reason) const {
    if (unread_) std::rethrow_exception(unread_);
    if (reason.find("requires too much memory") != reason.npos) RefuseWindow();
    RefuseDamage(*raw_, form_, raw_->position(), "", reason);
  }
  [[noreturn]] void RefuseWindow() const {
    const std::string path = raw_->file().path().string();
    throw DataError(fmt::format(
        "{}: zstd with a window of over 128 MB (`zstd --long=31`), which is "
        "not read here; unpack it with `zstd -d --long=31 '{}'`, and "
        "pack it again without --long if it is to stay packed",
        path, path));
  }
  void Check(int code) const {
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) Refuse(Message());
  }

  RawBytes* raw_;
  FileForm form_;
  bool empty_ = false;
  std::exception_ptr unread_;
  std::unique_ptr<archive, int (*)(archive*)> archive_{::archive_read_new(),
                                                       ::archive_read_free};
};

}  // namespace

std::string_view RawBytes::Next() {
  const int64_t count = std::min(std::ssize(block_), file_->size() - position_);
  file_->Read(position_, count, block_.data());
  position_ += count;
  const std::string_view bytes(block_.data(), static_cast<size_t>(count));
  hash_.Update(bytes);
  return bytes;
}

std::string RawBytes::Hash() {
  while (!Next().empty()) continue;  // a decoder may stop before the end
  return Sha256Hex(hash_.Finish());
}

FileForm FormOf(std::string_view beginning) {
  using namespace std::string_view_literals;  // xz's magic ends with a zero
  if (beginning.starts_with("\x1F\x8B")) return FileForm::kGzip;
  if (beginning.starts_with("\xFD"
                            "7zXZ\0"sv)) {
    return FileForm::kXz;
  }
  if (beginning.starts_with("\x28\xB5\x2F\xFD") ||
      IsSkippableFrame(beginning)) {
    return FileForm::kZstd;
  }
  if (beginning.starts_with("BZh") && beginning.size() >= 10 &&
      beginning.substr(4, 6) == "1AY&SY") {
    return FileForm::kBzip2;
  }
  if (beginning.starts_with("PK\3\4")) return FileForm::kZip;
  if (beginning.starts_with("PAR1")) return FileForm::kParquet;
  if (beginning.starts_with("version https://git-lfs")) return FileForm::kLfs;
  if (beginning.starts_with(
          fmt::format("{{\n  \"format\": \"{}\"", kTokenFilesFormat))) {
    return FileForm::kTokens;
  }
  if (beginning.size() >= 262 && beginning.substr(257, 5) == "ustar") {
    return FileForm::kTar;
  }
  return IsHtml(beginning) ? FileForm::kHtml : FileForm::kPlain;
}

FileForm FormOf(const InputFile& file) {
  std::array<char, kBeginning> bytes;
  const int64_t count = std::min(kBeginning, file.size());
  file.Read(0, count, bytes.data());
  return FormOf({bytes.data(), static_cast<size_t>(count)});
}

bool IsNearly(const std::function<bool(const std::string&)>& is_read,
              std::string_view name) {
  std::string left = LowerCase(name);
  while (!is_read(left)) {
    const size_t dot = left.rfind('.');
    if (dot == left.npos) return false;
    const std::string ending = left.substr(dot + 1);
    left.resize(dot);
    if (std::ranges::find(kPackedTars, ending) != std::end(kPackedTars)) {
      left += ".tar";
    } else if (!IsPackersEnding(ending)) {
      return false;
    }
  }
  return true;
}

void RefuseForeign(const InputFile& file) {
  switch (FormOf(file)) {
    case FileForm::kLfs:
      RefuseForm(file,
                 "only the pointer that Git LFS leaves in place of a file; get "
                 "the file itself with `git lfs pull`");
    case FileForm::kHtml:
      RefuseForm(file,
                 "an HTML page, perhaps of a server that did not give the "
                 "file; download it again");
    case FileForm::kBzip2:
    case FileForm::kZip:
      RefuseForm(file,
                 "bzip2 or zip, which are not read here; unpack it, and pack "
                 "it with gzip, xz or zstd if it is to stay packed");
    case FileForm::kParquet:
      RefuseForm(file,
                 "Parquet, which is not read here; turn it into lines of JSON "
                 "with trainer/corpora/parquet_to_jsonl.py, and give them as "
                 "jsonl:PATH; if it is OpenWebText, give them with `--corpus "
                 "owt --place owt=OUT.jsonl.zst --normalise hf_openwebtext`, "
                 "and set data.normalise of a run accordingly");
    default:
      return;
  }
}

struct PackedFile::Impl {
  explicit Impl(const InputFile& file) : raw(file) {
    const FileForm form = FormOf(file);
    if (form == FileForm::kGzip) {
      decoder = std::make_unique<GzipDecoder>(&raw);
    } else if (form == FileForm::kXz || form == FileForm::kZstd) {
      decoder = std::make_unique<ArchiveDecoder>(&raw, form);
    } else {
      decoder = std::make_unique<PlainDecoder>(&raw);
    }
  }
  RawBytes raw;
  std::unique_ptr<Decoder> decoder;
};

PackedFile::PackedFile(const InputFile& file)
    : impl_(std::make_unique<Impl>(file)) {}
PackedFile::~PackedFile() = default;

int64_t PackedFile::Read(char* out, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const int64_t count = impl_->decoder->Read(out + done, size - done);
    if (count == 0) break;
    done += count;
  }
  return done;
}

int64_t PackedFile::position() const { return impl_->decoder->position(); }

std::string PackedFile::sha256() { return impl_->raw.Hash(); }

ssize_t GiveToArchive(archive* reader,
                      const std::function<std::string_view()>& next,
                      const void** bytes, std::exception_ptr* unread) {
  try {
    const std::string_view given = next();
    *bytes = given.data();
    return static_cast<ssize_t>(given.size());
  } catch (const Error& error) {
    if (dynamic_cast<const EnvironmentError*>(&error) != nullptr) {
      *unread = std::current_exception();
    }
    ::archive_set_error(reader, EIO, "%s", error.what());
    return -1;
  }
}

std::string ArchiveMessage(archive* reader) {
  const char* text = ::archive_error_string(reader);
  return text != nullptr ? text : "unreadable";
}

}  // namespace softmoe::trainer
