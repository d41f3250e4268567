// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/json_corpus.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/errors.h"
#include "core/files/input_file.h"
#include "trainer/corpora/packed_file.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

// Escapes make a document at worst six times as long (\u0001). One that is as
// long as allowed and has no other characters leaves no room for a URL.
constexpr size_t kMaxLineBytes = 6 * static_cast<size_t>(kMaxDocumentBytes);
constexpr int64_t kBlock = int64_t{1} << 18;  // bytes read at a time

// Keeps the text of one member of a line's object, and builds none of the
// others.
class TextFinder {
 public:
  using Number = nlohmann::json::number_float_t;

  // With `names`, it also keeps the names of the first strings.
  TextFinder(const std::string& key, std::string* text, bool names = false)
      : key_(key), text_(*text), keeps_names_(names) {}
  bool found() const { return found_; }
  // `"id", "body", ...`; or "".
  const std::string& names() const { return names_; }

  bool null() { return Other(); }
  bool boolean(bool) { return Other(); }
  bool number_integer(int64_t) { return Other(); }
  bool number_unsigned(uint64_t) { return Other(); }
  bool number_float(Number, const std::string&) { return Other(); }
  bool binary(nlohmann::json::binary_t&) { return Other(); }
  bool string(std::string& value) {
    if (!IsText()) {
      if (keeps_names_ && depth_ == 1 && in_object_) KeepName();
      return true;
    }
    found_ = true;
    text_ = std::move(value);
    return true;
  }
  bool start_object(size_t) {
    Other();
    in_object_ = in_object_ || depth_ == 0;
    ++depth_;
    return true;
  }
  bool start_array(size_t) {
    Other();
    ++depth_;
    return true;
  }
  bool key(std::string& name) {
    if (depth_ != 1) return true;
    is_text_ = name == key_;
    if (keeps_names_) member_.assign(name, 0, kMaxName);
    return true;
  }
  bool end_object() { return --depth_, true; }
  bool end_array() { return --depth_, true; }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::json::exception&) {
    return false;
  }

 private:
  static constexpr int kMaxNames = 5;
  static constexpr size_t kMaxName = 40;

  void KeepName() {
    if (num_names_ > kMaxNames) return;
    if (num_names_ > 0) names_ += ", ";
    names_ +=
        num_names_++ == kMaxNames
            ? "..."
            : nlohmann::json(member_).dump(
                  -1, ' ', true, nlohmann::json::error_handler_t::replace);
  }
  bool IsText() const { return depth_ == 1 && in_object_ && is_text_; }
  // As in any parser, the last of several members with one key counts.
  bool Other() {
    if (IsText()) found_ = false;
    return true;
  }

  const std::string& key_;
  std::string& text_;
  int64_t depth_ = 0;
  bool in_object_ = false, is_text_ = false, found_ = false;
  const bool keeps_names_;
  std::string member_, names_;
  int num_names_ = 0;
};

class JsonLines : public DocumentSource {
 public:
  JsonLines(const fs::path& path, ReadOptions options)
      : options_(std::move(options)), file_(path) {
    RefuseForeign(file_);
    packed_.emplace(file_);
  }
  JsonLines(const JsonLines&) = delete;  // packed_ has the address of file_
  JsonLines& operator=(const JsonLines&) = delete;

  bool Next(std::string* document) override {
    for (std::string_view line; NextLine(&line);) {
      if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) continue;
      if (const std::string bad = Parse(line, document); !bad.empty()) {
        Refuse(bad);
      } else if (document->empty()) {
        ++skipped_.empty;
      } else {
        return true;
      }
    }
    return false;
  }
  int64_t input_bytes() const override { return packed_->position(); }
  std::string sha256() override { return packed_->sha256(); }

 private:
  void Refuse(const std::string& what) {
    SkipOrThrow(options_.on_bad, fmt::format("{}:{}: {}", file_.path().string(),
                                             line_number_, what));
  }

  // Moves to the next line, valid until the next call.
  bool NextLine(std::string_view* line) {
    ++line_number_;
    bool too_long = false;
    for (size_t searched = used_;;) {
      const size_t end = text_.find('\n', searched);
      const size_t next = end == std::string::npos ? text_.size() : end + 1;
      if (!too_long && next - used_ > kMaxLineBytes) {
        Refuse(fmt::format("a line of over {} bytes", kMaxLineBytes));
        too_long = true;
      }
      if (end != std::string::npos || ended_) {
        *line = std::string_view(text_).substr(used_, next - used_);
        used_ = searched = next;
        if (!too_long) return !line->empty();
        too_long = false;
        ++line_number_;
        continue;
      }
      text_.erase(0, too_long ? text_.size() : used_);
      used_ = 0;
      searched = text_.size();
      text_.resize(searched + kBlock);
      const int64_t count = packed_->Read(text_.data() + searched, kBlock);
      text_.resize(searched + static_cast<size_t>(count));
      ended_ = count < kBlock;
    }
  }

  // What is wrong with the line; empty if nothing is.
  std::string Parse(std::string_view line, std::string* document) const {
    TextFinder finder(options_.text_key, document);
    if (!nlohmann::json::sax_parse(line, &finder)) return "no JSON in UTF-8";
    if (!finder.found()) {
      TextFinder again(options_.text_key, document, /*names=*/true);
      nlohmann::json::sax_parse(line, &again);
      return fmt::format(
          "no JSON object with a string named \"{}\"{}", options_.text_key,
          again.names().empty()
              ? ""
              : fmt::format(", but with {}: `//:prepare_data --text-key` says "
                            "which is the document",
                            again.names()));
    }
    if (FindNonText(*document) != std::string_view::npos) {
      return "the document has a NUL character";
    }
    if (static_cast<int64_t>(document->size()) > kMaxDocumentBytes) {
      return fmt::format("a document of {} bytes, at most {} are read",
                         document->size(), kMaxDocumentBytes);
    }
    return "";
  }

  ReadOptions options_;
  InputFile file_;
  std::optional<PackedFile> packed_;
  std::string text_;    // part of the file
  size_t used_ = 0;     // how much of it was given out
  bool ended_ = false;  // nothing follows it
  int64_t line_number_ = 0;
};

}  // namespace

std::unique_ptr<DocumentSource> OpenJsonLines(const fs::path& path,
                                              const ReadOptions& options) {
  return std::make_unique<JsonLines>(path, options);
}

}  // namespace softmoe::trainer
