// SPDX-License-Identifier: Apache-2.0
//
// json_lines.h - records as they are measured, one JSON object per line, and
// objects with a checksum of themselves.
//
// A record is written with one system call, so a crash leaves whole lines and
// at most one torn last line. Reading ignores that line; reopening removes it,
// or completes it if only its '\n' is missing. Keys keep their order; doubles
// are printed so that they read back as the same bits; NaN and infinities,
// which JSON lacks, are the strings "nan", "inf" and "-inf".
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
  // Opens or creates the file for appending. If its last line has no '\n', the
  // beginning of a JSON object is removed, and so are NULs; a whole object
  // after other lines gets its '\n'. Throws EnvironmentError, or DataError
  // (FILE:LINE) if a line is not a JSON object, or if that last line is
  // anything else, such as the only object of another program's file; the file
  // then stays unchanged.
  explicit JsonLinesWriter(std::filesystem::path path);
  ~JsonLinesWriter();
  JsonLinesWriter(const JsonLinesWriter&) = delete;
  JsonLinesWriter& operator=(const JsonLinesWriter&) = delete;

  // Appends one record. If it throws EnvironmentError (disk full), the file
  // ends with the previous record.
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

// Returns `value` as JSON with `indent` spaces for each level, or on one line
// if `indent` is -1, without a final '\n'. NaN and infinities are null. Bytes
// that are not UTF-8, which paths may contain, become U+FFFD.
std::string JsonText(const nlohmann::ordered_json& value, int indent);

// Returns the line that JsonLinesWriter writes, without its '\n'.
std::string JsonLine(const nlohmann::ordered_json& record);

// Returns the object that `text` holds; null if it holds none, or one with more
// than 64 levels.
nlohmann::ordered_json ParseJsonObject(std::string_view text);

// Returns `value` with a number for every text "nan", "inf" and "-inf".
nlohmann::ordered_json WithNonFinite(nlohmann::ordered_json value);

// Returns all records of a file. A last line without '\n' is still being
// written or torn, and is left out, even if JsonLinesWriter would keep it.
// Throws EnvironmentError if the file cannot be read, DataError (FILE:LINE) if
// a line is not a JSON object.
std::vector<nlohmann::ordered_json> ReadJsonLines(
    const std::filesystem::path& path);

// Calls visit(record, line) for each of these records, with the number of its
// line, from 1 on. Holds the file's text and one record in memory.
void VisitJsonLines(
    const std::filesystem::path& path,
    const std::function<void(nlohmann::ordered_json&&, int64_t)>& visit);

// Returns the number `record[key]`, "nan", "inf" and "-inf" included. Throws a
// DataError that names `place` (a FILE:LINE) and the key if there is none.
double JsonNumber(const nlohmann::ordered_json& record, const std::string& key,
                  const std::string& place);

// Sets `*field` to `object[key]` and returns true, if that exists and has the
// field's type without conversion (an int64_t: from 0 to 2^63 - 1).
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               bool* field);
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               int64_t* field);
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               std::string* field);
bool TakeField(const nlohmann::ordered_json& object, const std::string& key,
               std::vector<std::string>* field);

// Returns `object` with one more member at its end, "sha256": the hash of the
// rest, printed on one line. White space between members does not count.
nlohmann::ordered_json Sealed(nlohmann::ordered_json object);

// Whether `object` is what Sealed returns.
bool IsSealed(const nlohmann::ordered_json& object);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_JSON_LINES_H_
