// SPDX-License-Identifier: Apache-2.0
//
// json_lines.h - records as they are measured, one JSON object per line, and
// objects with a checksum of themselves.
//
// A record is written with one system call, so a crash leaves whole lines and
// at most one torn last one, which reopening removes (or ends, where only its
// end is missing) and reading ignores. Keys keep their order; doubles are
// printed so that they read back as the same bits; NaN and infinities, which
// JSON lacks, are the strings "nan", "inf" and "-inf".
#ifndef SOFTMOE_CORE_FILES_JSON_LINES_H_
#define SOFTMOE_CORE_FILES_JSON_LINES_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe {

class JsonLinesWriter {
 public:
  // Opens or creates the file for appending. Of a last line without an end,
  // the beginning of a JSON object is removed, and so are NULs; a whole object
  // behind other lines gets its end. Throws EnvironmentError, or DataError
  // (FILE:LINE) if a line is not a JSON object, or that last line is anything
  // else, such as the one object of another program's file; then the file is as
  // it was.
  explicit JsonLinesWriter(std::filesystem::path path);
  ~JsonLinesWriter();
  JsonLinesWriter(const JsonLinesWriter&) = delete;
  JsonLinesWriter& operator=(const JsonLinesWriter&) = delete;

  // Appends one record. Throws EnvironmentError (disk full): then the file ends
  // with the previous record.
  void Write(const nlohmann::ordered_json& record);
  // Waits until all records are on the disk: a crash of the machine then loses
  // none. Throws EnvironmentError.
  void Sync();

 private:
  // Leaves the file as it was if it throws.
  void Append(std::string_view line);

  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// `value` as JSON with `indent` spaces for each level, or on one line with -1,
// without an end; NaN and infinities are null. Bytes that are not UTF-8, as
// paths may have, become U+FFFD: JSON has no other texts.
std::string JsonText(const nlohmann::ordered_json& value, int indent);

// One line without its end: what JsonLinesWriter writes.
std::string JsonLine(const nlohmann::ordered_json& record);

// The object that `text` holds; null if it holds none, or one with more than 64
// levels.
nlohmann::ordered_json ParseJsonObject(std::string_view text);

// `value` with every text "nan", "inf" and "-inf" as the number it stands for.
nlohmann::ordered_json WithNonFinite(nlohmann::ordered_json value);

// All records of a file. A last line without an end is still being written, or
// torn, and is left out, even if JsonLinesWriter would keep it. Throws
// EnvironmentError if the file cannot be read, DataError (FILE:LINE) if a line
// is not a JSON object.
std::vector<nlohmann::ordered_json> ReadJsonLines(
    const std::filesystem::path& path);

// Calls visit(record, line) for each of them, with its number from 1 on; only
// one of them is in memory.
void VisitJsonLines(
    const std::filesystem::path& path,
    const std::function<void(nlohmann::ordered_json&&, int64_t)>& visit);

// The number `record[key]`, "nan", "inf" and "-inf" included. Throws DataError
// naming `place` (a FILE:LINE) and the key.
double JsonNumber(const nlohmann::ordered_json& record, const std::string& key,
                  const std::string& place);

// Takes `object[key]`, if it is there and of the field's type without any
// conversion (an int64_t: a whole number from 0 to 2^63 - 1), and says so.
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               bool* field);
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               int64_t* field);
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               std::string* field);
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               std::vector<std::string>* field);

// `object` with one more member at its end, "sha256": the hash of the object
// without it, printed on one line. White space between members does not count.
nlohmann::ordered_json Sealed(nlohmann::ordered_json object);

// Whether `object` is what Sealed returns.
bool IsSealed(const nlohmann::ordered_json& object);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_JSON_LINES_H_
