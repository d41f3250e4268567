// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/owt_corpus.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "core/errors.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// openwebtext.tar.xz / subset.tar / urlsf_subset.xz is the deepest we know.
constexpr size_t kMaxDepth = 4;

bool IsArchive(std::string_view name) {
  return name.ends_with(".xz") || name.ends_with(".tar");
}

// An archive on disk, or one that is a member of `outer`.
class Archive {
 public:
  explicit Archive(const fs::path& path) : place_(path.string()) {
    Open();
    Check(::archive_read_open_filename(archive_.get(), path.c_str(), kBlock));
  }
  Archive(Archive* outer, const std::string& member)
      : place_(outer->place_ + " > " + member), outer_(outer) {
    Open();
    Check(
        ::archive_read_open(archive_.get(), this, nullptr, ReadOuter, nullptr));
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // Name of the next regular file in it; empty at the end.
  std::string NextMember() {
    while (true) {
      archive_entry* entry = nullptr;
      const int code = ::archive_read_next_header(archive_.get(), &entry);
      if (code == ARCHIVE_EOF) return "";
      Check(code);
      const char* name = ::archive_entry_pathname(entry);
      if (name == nullptr || ::archive_entry_filetype(entry) != AE_IFREG) {
        continue;
      }
      member_ = name;
      return member_;
    }
  }

  // The content of the current member.
  void ReadText(std::string* text) {
    text->clear();
    while (true) {
      const size_t old = text->size();
      text->resize(old + kBlock);
      const la_ssize_t count =
          ::archive_read_data(archive_.get(), text->data() + old, kBlock);
      if (count < 0) Refuse(Message());
      text->resize(old + static_cast<size_t>(count));
      if (count == 0) break;
      if (static_cast<int64_t>(text->size()) > kMaxDocumentBytes) {
        Refuse(fmt::format("a document of over {} bytes", kMaxDocumentBytes));
      }
    }
    const size_t bad = FindNonText(*text);
    if (bad != std::string::npos) {
      Refuse(fmt::format("byte {} is not UTF-8 text", bad));
    }
  }

 private:
  static constexpr size_t kBlock = 1 << 16;

  void Open() {
    SOFTMOE_CHECK(archive_ != nullptr);
    // Other formats that libarchive knows call programs (lrzip) or decode mail.
    ::archive_read_support_filter_xz(archive_.get());
    ::archive_read_support_format_tar(archive_.get());
  }

  static la_ssize_t ReadOuter(archive* inner, void* self, const void** bytes) {
    auto* archive = static_cast<Archive*>(self);
    *bytes = archive->block_.data();
    const la_ssize_t count = ::archive_read_data(
        archive->outer_->archive_.get(), archive->block_.data(), kBlock);
    if (count < 0) {
      ::archive_set_error(inner, EIO, "%s", archive->outer_->Message().c_str());
    }
    return count;
  }

  std::string Message() const {
    const char* text = ::archive_error_string(archive_.get());
    return text != nullptr ? text : "unreadable";
  }
  [[noreturn]] void Refuse(const std::string& what) const {
    throw DataError(fmt::format(
        "{}{}{}: {}; download this archive again and compare its checksum",
        place_, member_.empty() ? "" : " > ", member_, what));
  }
  void Check(int code) const {
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) Refuse(Message());
  }

  std::string place_;
  std::string member_;
  Archive* outer_ = nullptr;
  std::unique_ptr<archive, int (*)(archive*)> archive_{::archive_read_new(),
                                                       ::archive_read_free};
  std::array<char, kBlock> block_;
};

class OwtFiles : public DocumentSource {
 public:
  explicit OwtFiles(std::vector<fs::path> files) : files_(std::move(files)) {}
  ~OwtFiles() override {
    while (!open_.empty()) open_.pop_back();  // innermost first
  }

  bool Next(std::string* document) override {
    while (true) {
      if (open_.empty()) {
        if (next_file_ == files_.size()) return false;
        open_.push_back(std::make_unique<Archive>(files_[next_file_++]));
      }
      Archive* archive = open_.back().get();
      const std::string member = archive->NextMember();
      if (member.empty()) {
        open_.pop_back();
      } else if (member.ends_with(".txt")) {
        archive->ReadText(document);
        if (!document->empty()) return true;
      } else if (IsArchive(member) && open_.size() < kMaxDepth) {
        open_.push_back(std::make_unique<Archive>(archive, member));
      }
    }
  }

 private:
  std::vector<fs::path> files_;
  size_t next_file_ = 0;
  std::vector<std::unique_ptr<Archive>> open_;  // each inside the previous one
};

}  // namespace

std::vector<fs::path> FindOwtFiles(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (IsArchive(entry.path().string())) files.push_back(entry.path());
  }
  if (files.empty()) {
    throw EnvironmentError(fmt::format(
        "no OpenWebText in {}: there are no *.tar.xz, *.tar or *.xz files; put "
        "openwebtext.tar.xz there (https://skylion007.github.io/"
        "OpenWebTextCorpus), or say where it is with `--corpus owt:PATH`",
        path.string()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::unique_ptr<DocumentSource> OpenOwt(const std::vector<fs::path>& files) {
  return std::make_unique<OwtFiles>(files);
}

}  // namespace softmoe::trainer
