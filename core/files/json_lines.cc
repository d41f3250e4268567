// SPDX-License-Identifier: Apache-2.0
#include "core/files/json_lines.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/sha256.h"

namespace softmoe {
namespace {

// Our objects have two or three levels. Copying, comparing or printing deeply
// nested ones would exhaust the stack.
constexpr int kMaxJsonDepth = 64;

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Takes object[key] if `fits`, which may be a pointer to a member, accepts it.
template <typename Fits, typename T>
bool Take(const Json& object, const std::string& key, Fits fits, T* field) {
  if (!object.is_object()) return false;
  const auto value = object.find(key);
  if (value == object.end() || !std::invoke(fits, *value)) return false;
  *field = value->get<T>();
  return true;
}

// Returns `value` with a string for every number that JSON cannot express.
Json WithoutNonFinite(Json value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    return value;
  }
  if (value.is_structured()) {
    for (Json& child : value) child = WithoutNonFinite(std::move(child));
  }
  return value;
}

// Calls visit(record, line, end) for every whole line of `text`, with its
// number and the offset after its '\n'.
void VisitLines(const std::string& text, const fs::path& path,
                const std::function<void(Json&&, int64_t, size_t)>& visit) {
  size_t begin = 0;
  for (int64_t line = 1;; ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;
    Json record =
        ParseJsonObject(std::string_view(text).substr(begin, end - begin));
    if (!record.is_object()) {
      throw DataError(
          fmt::format("{}:{}: not a JSON object of at most {} levels; correct "
                      "the line, or remove the file",
                      path.string(), line, kMaxJsonDepth));
    }
    visit(std::move(record), line, end + 1);
    begin = end + 1;
  }
}

// Kinds of a last line without '\n'.
enum class LastLine {
  kTorn,    // nothing, the beginning of a record, or zeros in place of one
  kWhole,   // a record without '\n', or all of a file of one JSON object
  kForeign  // anything else, which is not ours to remove
};

LastLine KindOf(std::string_view line) {
  // A power failure leaves zeros.
  if (line.find_first_not_of('\0') == line.npos) return LastLine::kTorn;
  if (line.front() != '{') return LastLine::kForeign;
  if (!Json::accept(line.begin(), line.end())) return LastLine::kTorn;
  return ParseJsonObject(line).is_object() ? LastLine::kWhole
                                           : LastLine::kForeign;
}

constexpr const char* kSeal = "sha256";

}  // namespace

Json ParseJsonObject(std::string_view text) {
  bool shallow = true;
  const Json::parser_callback_t look = [&](int depth, Json::parse_event_t event,
                                           Json&) {
    const bool begins = event == Json::parse_event_t::object_start ||
                        event == Json::parse_event_t::array_start;
    // The object itself begins at depth 0.
    shallow = shallow && (!begins || depth < kMaxJsonDepth);
    return shallow;
  };
  Json object = Json::parse(text.begin(), text.end(), look,
                            /*allow_exceptions=*/false);
  return shallow && object.is_object() ? object : Json();
}

std::string JsonText(const Json& value, int indent) {
  // By default dump() throws at a byte that is not UTF-8.
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string JsonLine(const Json& record) {
  SOFTMOE_CHECK(record.is_object()) << record.type_name();
  return JsonText(WithoutNonFinite(record), -1);
}

Json WithNonFinite(Json value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  if (value.is_structured()) {
    for (Json& child : value) child = WithNonFinite(std::move(child));
  }
  return value;
}

JsonLinesWriter::JsonLinesWriter(fs::path path) : path_(std::move(path)) {
  RequireRegularOrAbsent(path_);
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw FileError("write", path_, errno);
  try {
    // Each writer knows only its own lines, so that two would overwrite each
    // other's. Some file systems have no locks.
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw EnvironmentError(path_.string() +
                             ": another process is writing this file; wait "
                             "for it, or name another file");
    }
    const std::string text = ReadWholeFile(path_);
    int64_t lines = 0;
    VisitLines(text, path_, [&](Json&&, int64_t line, size_t end) {
      lines = line;
      size_ = static_cast<int64_t>(end);
    });
    const std::string_view last =
        std::string_view(text).substr(static_cast<size_t>(size_));
    const LastLine kind = KindOf(last);
    if (kind == LastLine::kForeign ||
        (kind == LastLine::kWhole && lines == 0)) {
      throw DataError(fmt::format(
          "{}:{}: the last line has no line end and may not be a record of "
          "this program; name another file, or remove that line",
          path_.string(), lines + 1));
    }
    if (kind == LastLine::kWhole) {
      size_ = std::ssize(text);
      Append("\n");
    } else if (ftruncate(descriptor_, size_) != 0) {
      throw FileError("write", path_, errno);
    }
    if (text.empty()) SyncFolderOf(path_);  // open() may have created the file
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

JsonLinesWriter::~JsonLinesWriter() { close(descriptor_); }

void JsonLinesWriter::Write(const Json& record) {
  Append(JsonLine(record) + "\n");
}

void JsonLinesWriter::Append(std::string_view line) {
  if (const int error = WriteAll(descriptor_, line, size_)) {
    // If this fails too, the torn line goes when the file is reopened.
    [[maybe_unused]] const int result = ftruncate(descriptor_, size_);
    throw FileError("write", path_, error);
  }
  size_ += static_cast<int64_t>(line.size());
}

void JsonLinesWriter::Sync() {
  if (fsync(descriptor_) != 0) throw FileError("write", path_, errno);
}

std::vector<Json> ReadJsonLines(const fs::path& path) {
  std::vector<Json> records;
  VisitJsonLines(path, [&](Json&& record, int64_t) {
    records.push_back(std::move(record));
  });
  return records;
}

void VisitJsonLines(const fs::path& path,
                    const std::function<void(Json&&, int64_t)>& visit) {
  VisitLines(ReadWholeFile(path), path,
             [&](Json&& record, int64_t line, size_t) {
               visit(std::move(record), line);
             });
}

double JsonNumber(const Json& record, const std::string& key,
                  const std::string& place) {
  const auto value = record.find(key);
  if (value == record.end()) {
    throw DataError(
        fmt::format("{}: '{}' is absent; the file was written by "
                    "another version of this program: read it with that one, "
                    "or remove the file",
                    place, key));
  }
  const Json number = WithNonFinite(*value);
  if (number.is_number()) return number.get<double>();
  throw DataError(fmt::format(
      "{}: '{}' is not a number; correct the line, or remove the file", place,
      key));
}

bool TakeField(const Json& object, const std::string& key, bool* field) {
  return Take(object, key, &Json::is_boolean, field);
}
bool TakeField(const Json& object, const std::string& key, int64_t* field) {
  const auto is_count = [](const Json& value) {
    return value.is_number_unsigned() &&
           std::in_range<int64_t>(value.get<uint64_t>());
  };
  return Take(object, key, is_count, field);
}
bool TakeField(const Json& object, const std::string& key, std::string* field) {
  return Take(object, key, &Json::is_string, field);
}
bool TakeField(const Json& object, const std::string& key,
               std::vector<std::string>* field) {
  const auto holds_texts = [](const Json& value) {
    return value.is_array() && std::ranges::all_of(value, &Json::is_string);
  };
  return Take(object, key, holds_texts, field);
}

nlohmann::ordered_json Sealed(nlohmann::ordered_json object) {
  object.erase(kSeal);
  const std::string seal = Sha256Hex(JsonLine(object));
  object[kSeal] = seal;
  return object;
}

bool IsSealed(const nlohmann::ordered_json& object) {
  return object.is_object() && object.contains(kSeal) &&
         Sealed(object) == object;
}

}  // namespace softmoe
