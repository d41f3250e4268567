// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/text_corpus.h"

#include <fmt/format.h>

#include "core/errors.h"
#include "core/files/mapped_file.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(kWhiteSpace) == std::string_view::npos;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) + 1 - begin);
}

// Removes the first line of `*rest`, and returns it without its line end.
std::string_view TakeLine(std::string_view* rest) {
  const size_t end = rest->find('\n');
  std::string_view line = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

enum class Separator { kMark, kBlankLine, kLineEnd };

bool Separates(Separator separator, std::string_view line) {
  if (separator == Separator::kMark) return line == kDocumentSeparator;
  return IsBlank(line);
}

Separator FindSeparator(std::string_view text) {
  bool blank = false;
  for (std::string_view rest = Trim(text); !rest.empty();) {
    const std::string_view line = TakeLine(&rest);
    if (line == kDocumentSeparator) return Separator::kMark;
    blank = blank || IsBlank(line);
  }
  return blank ? Separator::kBlankLine : Separator::kLineEnd;
}

class TextFile : public DocumentSource {
 public:
  explicit TextFile(const std::filesystem::path& path)
      : path_(path), file_(path) {
    text_ = {reinterpret_cast<const char*>(file_.data()),
             static_cast<size_t>(file_.size())};
    const std::string place = path.string();
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);  // BOM
    const size_t bad = FindNonText(text_);
    if (bad != std::string_view::npos) {
      throw DataError(fmt::format(
          "{}: byte {} (0x{:02X}) is not UTF-8 text; give a text file, or "
          "convert this one, e.g. `iconv -f latin1 -t utf-8`",
          place, Offset(text_.substr(bad)),
          static_cast<unsigned char>(text_[bad])));
    }
    if (IsBlank(text_)) {
      throw DataError(fmt::format(
          "{}: no text in it ({} bytes); give a file with documents of English "
          "text, separated by blank lines",
          place, file_.size()));
    }
    separator_ = FindSeparator(text_);
    rest_ = text_;
  }

  bool Next(std::string* document) override {
    std::string_view found;
    while (found.empty() && !rest_.empty()) found = Trim(TakeDocument());
    if (static_cast<int64_t>(found.size()) > kMaxDocumentBytes) {
      throw DataError(fmt::format(
          "{}: byte {}: a document of {} bytes, more than {}; separate "
          "documents by blank lines or lines of {}",
          path_.string(), Offset(found), found.size(), kMaxDocumentBytes,
          kDocumentSeparator));
    }
    document->assign(found);
    return !found.empty();
  }

 private:
  std::string_view TakeDocument() {
    const char* begin = rest_.data();
    if (separator_ == Separator::kLineEnd) return TakeLine(&rest_);
    while (!rest_.empty()) {
      const char* line_begin = rest_.data();
      if (Separates(separator_, TakeLine(&rest_))) return {begin, line_begin};
    }
    return {begin, text_.end()};
  }

  // Where in the file `part` begins.
  size_t Offset(std::string_view part) const {
    return static_cast<size_t>(part.data() -
                               reinterpret_cast<const char*>(file_.data()));
  }

  std::filesystem::path path_;
  MappedFile file_;
  std::string_view text_;
  std::string_view rest_;
  Separator separator_ = Separator::kLineEnd;
};

}  // namespace

std::unique_ptr<DocumentSource> OpenTextFile(
    const std::filesystem::path& path) {
  return std::make_unique<TextFile>(path);
}

}  // namespace softmoe::trainer
