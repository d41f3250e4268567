// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/text_corpus.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/errors.h"
#include "core/files/input_file.h"
#include "trainer/corpora/packed_file.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr int64_t kTextBlock = int64_t{1} << 20;  // bytes read at a time
// The longest document, and as much white space around it.
constexpr size_t kMaxTextLineBytes = 2 * kMaxDocumentBytes;

std::string_view TrimLeft(std::string_view text) {
  text.remove_prefix(
      std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  return text;
}

std::string_view TrimRight(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kWhiteSpace) + 1);
}

bool IsBlank(std::string_view line) { return TrimLeft(line).empty(); }

bool IsMark(std::string_view line) {
  return TrimLeft(TrimRight(line)) == kDocumentSeparator;
}

// Whether the line begins or ends with a mark right beside text, as where
// documents were joined without line ends. A mark elsewhere is one that the
// text mentions.
bool HasMarkAtAnEnd(std::string_view line) {
  line = TrimLeft(TrimRight(line));
  std::string_view rest = line;
  if (line.starts_with(kDocumentSeparator)) {
    rest.remove_prefix(kDocumentSeparator.size());
    return !rest.empty() && TrimLeft(rest) == rest;
  }
  if (!line.ends_with(kDocumentSeparator)) return false;
  rest.remove_suffix(kDocumentSeparator.size());
  return TrimRight(rest) == rest;
}

[[noreturn]] void RefuseLength(const InputFile& file, int64_t begin,
                               const char* what, size_t limit) {
  throw DataError(fmt::format(
      "{}: byte {}: a {} of more than {} bytes; separate documents by blank "
      "lines or lines of {}",
      file.path().string(), begin, what, limit, kDocumentSeparator));
}

// One pass over the lines of a file, unpacked, without its byte order mark.
class Lines {
 public:
  explicit Lines(const InputFile& file) : file_(&file), packed_(file) {
    ReadMore();
    if (text_.starts_with(kByteOrderMark)) used_ = kByteOrderMark.size();
  }

  // Moves to the next line, which includes its end ('\n', unless it is the
  // last) and is valid until the next call. Returns false at the end of the
  // file.
  bool Next(std::string_view* line) {
    size_t searched = used_;
    size_t end = text_.find('\n', searched);
    while (end == std::string::npos && !ended_) {
      begin_ += static_cast<int64_t>(used_);
      text_.erase(0, used_);
      used_ = 0;
      if (text_.size() > kMaxTextLineBytes) {
        RefuseLength(*file_, begin_, "line", kMaxTextLineBytes);
      }
      searched = text_.size();
      ReadMore();
      end = text_.find('\n', searched);
    }
    const size_t next = end == std::string::npos ? text_.size() : end + 1;
    *line = std::string_view(text_).substr(used_, next - used_);
    used_ = next;
    return !line->empty();
  }

  // The offset in the text at which `part` of the line begins.
  int64_t Offset(std::string_view part) const {
    return begin_ + (part.data() - text_.data());
  }
  int64_t input_bytes() const { return packed_.position(); }

 private:
  void ReadMore() {
    const size_t size = text_.size();
    text_.resize(size + static_cast<size_t>(kTextBlock));
    const int64_t count = packed_.Read(text_.data() + size, kTextBlock);
    text_.resize(size + static_cast<size_t>(count));
    ended_ = count < kTextBlock;
  }

  const InputFile* file_;
  PackedFile packed_;
  std::string text_;    // part of what the file holds
  int64_t begin_ = 0;   // where that part begins
  size_t used_ = 0;     // how much of text_ was given out
  bool ended_ = false;  // nothing follows it
};

enum class Separator { kMark, kBlankLine, kLineEnd };

// Finds out, from all lines of a file in order, what separates its documents.
// White space around the whole text is ignored.
class SeparatorFinder {
 public:
  void Add(std::string_view line) {
    ++line_number_;
    if (IsBlank(line)) {
      blank_line_ = true;
      return;
    }
    has_blank_ = has_blank_ || (has_text_ && blank_line_);
    has_mark_ = has_mark_ || IsMark(line);
    if (!has_mark_ && mark_in_line_ == 0 && HasMarkAtAnEnd(line)) {
      mark_in_line_ = line_number_;
    }
    has_text_ = true;
    blank_line_ = false;
  }

  bool has_text() const { return has_text_; }
  // The number of the first line of HasMarkAtAnEnd; 0 if there is none, or if
  // some line is the mark alone.
  int64_t mark_in_line() const { return has_mark_ ? 0 : mark_in_line_; }
  Separator Found() const {
    if (has_mark_) return Separator::kMark;
    return has_blank_ ? Separator::kBlankLine : Separator::kLineEnd;
  }

 private:
  bool has_text_ = false, has_mark_ = false, has_blank_ = false;
  bool blank_line_ = false;  // after the last line of text so far
  int64_t line_number_ = 0, mark_in_line_ = 0;
};

class TextFile : public DocumentSource {
 public:
  explicit TextFile(const std::filesystem::path& path)
      : file_(path), separator_(Inspect(file_)), lines_(file_) {}
  TextFile(const TextFile&) = delete;  // lines_ has the address of file_
  TextFile& operator=(const TextFile&) = delete;

  bool Next(std::string* document) override {
    document->clear();
    int64_t begin = 0;
    for (std::string_view line; lines_.Next(&line);) {
      const bool separates = Separates(line);
      if (!separates) {
        if (document->empty()) {
          line = TrimLeft(line);
          begin = lines_.Offset(line);
        }
        const bool blank = IsBlank(line);
        // Blank lines are part of the document only if text follows; after this
        // many, that would make it too long.
        constexpr size_t kTooMany = kMaxDocumentBytes + 1;
        if (blank) {
          line =
              line.substr(0, kTooMany - std::min(kTooMany, document->size()));
        }
        document->append(line);
        if (!blank && TrimRight(*document).size() > kMaxDocumentBytes) {
          RefuseLength(file_, begin, "document", kMaxDocumentBytes);
        }
      }
      const bool ends = separates || separator_ == Separator::kLineEnd;
      if (ends && !document->empty()) break;
    }
    document->resize(TrimRight(*document).size());
    return !document->empty();
  }
  int64_t input_bytes() const override { return lines_.input_bytes(); }

 private:
  static Separator Inspect(const InputFile& file) {
    // An HTML page is a text, if somebody wants it.
    if (FormOf(file) != FileForm::kHtml) RefuseForeign(file);
    SeparatorFinder finder;
    Lines lines(file);
    for (std::string_view line; lines.Next(&line);) {
      const size_t bad = FindNonText(line);
      if (bad != std::string_view::npos) {
        throw DataError(fmt::format(
            "{}: byte {} (0x{:02X}) is not UTF-8 text; give a text file, or "
            "convert this one, e.g. `iconv -f latin1 -t utf-8`",
            file.path().string(), lines.Offset(line.substr(bad)),
            static_cast<unsigned char>(line[bad])));
      }
      finder.Add(line);
    }
    if (!finder.has_text()) {
      throw DataError(fmt::format(
          "{}: no text in it ({} bytes); give a file with documents of English "
          "text, separated by blank lines",
          file.path().string(), file.size()));
    }
    if (finder.mark_in_line() > 0) {
      throw DataError(fmt::format(
          "{}:{}: {} separates documents only on a line of its own; put it on "
          "one, or, if the text only mentions it, give documents as jsonl:PATH",
          file.path().string(), finder.mark_in_line(), kDocumentSeparator));
    }
    return finder.Found();
  }

  bool Separates(std::string_view line) const {
    if (separator_ == Separator::kMark) return IsMark(line);
    return separator_ == Separator::kBlankLine && IsBlank(line);
  }

  InputFile file_;
  Separator separator_;
  Lines lines_;
};

}  // namespace

std::unique_ptr<DocumentSource> OpenTextFile(
    const std::filesystem::path& path) {
  return std::make_unique<TextFile>(path);
}

}  // namespace softmoe::trainer
