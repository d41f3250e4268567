// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/c4_corpus.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// Escapes make a document at worst six times as long (\u0000); a URL is added.
constexpr size_t kMaxLineBytes = 6 * static_cast<size_t>(kMaxDocumentBytes);

class C4Files : public DocumentSource {
 public:
  explicit C4Files(std::vector<fs::path> files) : files_(std::move(files)) {}
  ~C4Files() override { Close(); }

  bool Next(std::string* document) override {
    std::string line;
    while (NextLine(&line)) {
      if (line.find_first_not_of(" \t\r\n") == std::string::npos) continue;
      ParseLine(line, document);
      if (!document->empty()) return true;
    }
    return false;
  }

 private:
  [[noreturn]] void Refuse(const std::string& what) const {
    throw DataError(fmt::format(
        "{}:{}: {}; download this file again and compare its checksum",
        files_[next_file_ - 1].string(), line_number_, what));
  }

  void Close() {
    if (file_ != nullptr) ::gzclose(file_);
    file_ = nullptr;
  }

  bool NextLine(std::string* line) {
    line->clear();
    while (true) {
      if (file_ == nullptr) {
        if (next_file_ == files_.size()) return false;
        const fs::path& path = files_[next_file_++];
        errno = 0;
        file_ = ::gzopen(path.c_str(), "rb");
        if (file_ == nullptr) throw FileError("read", path, errno);
        ::gzbuffer(file_, 1 << 18);
        line_number_ = 0;
      }
      if (ReadLine(line)) return true;
      Close();
    }
  }

  // False at the end of the file.
  bool ReadLine(std::string* line) {
    ++line_number_;
    std::array<char, 1 << 14> part;
    while (::gzgets(file_, part.data(), static_cast<int>(part.size()))) {
      // gzgets appears to stop at NUL bytes; JSON has none.
      line->append(part.data());
      if (line->size() > kMaxLineBytes) {
        Refuse(fmt::format("a line of over {} bytes", kMaxLineBytes));
      }
      if (line->ends_with('\n')) return true;
    }
    int code = Z_OK;
    const std::string message = ::gzerror(file_, &code);
    if (code == Z_ERRNO) throw FileError("read", files_[next_file_ - 1], errno);
    if (code != Z_OK && code != Z_STREAM_END) {
      Refuse(fmt::format("damaged or truncated gzip data ({})", message));
    }
    return !line->empty();
  }

  void ParseLine(const std::string& line, std::string* document) const {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) Refuse("no JSON in UTF-8");
    const auto text = json.is_object() ? json.find("text") : json.end();
    if (!json.is_object() || text == json.end() || !text->is_string()) {
      Refuse("no JSON object with a string named \"text\"");
    }
    *document = text->get<std::string>();
    if (FindNonText(*document) != std::string_view::npos) {
      Refuse("the document has a NUL character");
    }
    if (static_cast<int64_t>(document->size()) > kMaxDocumentBytes) {
      Refuse(fmt::format("a document of {} bytes", document->size()));
    }
  }

  std::vector<fs::path> files_;
  size_t next_file_ = 0;
  gzFile file_ = nullptr;
  int64_t line_number_ = 0;
};

}  // namespace

std::vector<fs::path> FindC4Files(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  std::vector<fs::path> all;
  std::vector<fs::path> training;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".json.gz") && !name.ends_with(".json")) continue;
    all.push_back(entry.path());
    if (name.starts_with("c4-train.")) training.push_back(entry.path());
  }
  if (all.empty()) {
    throw EnvironmentError(fmt::format(
        "no C4 in {}: there are no *.json.gz files; put the publishers' files "
        "there (https://huggingface.co/datasets/allenai/c4, folder en), or "
        "say where they are with `--corpus c4:FOLDER`",
        path.string()));
  }
  auto& files = training.empty() ? all : training;
  std::sort(files.begin(), files.end());
  return files;
}

std::unique_ptr<DocumentSource> OpenC4(const std::vector<fs::path>& files) {
  return std::make_unique<C4Files>(files);
}

}  // namespace softmoe::trainer
