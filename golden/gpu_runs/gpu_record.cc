// SPDX-License-Identifier: Apache-2.0
#include "golden/gpu_runs/gpu_record.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/input_file.h"
#include "core/files/json_lines.h"
#include "golden/gpu_runs/gpu_conclusions.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kRemedy[] =
    "use the file as run_all.sh wrote it (for a kept record, import that file "
    "again), or run run_all.sh again";

// Reserved for the lines that say how stages ended.
constexpr int64_t kRoomForTheEnd = int64_t{1} << 20;

enum class Type { kText, kNumber, kWhole, kYesNo };

struct LineField {
  std::string name;
  Type type;
  // The field is left out if it was not measured: a simulated device has no
  // times.
  bool measured = false;
};

// The contents of a line: exactly the fields of its kind, in this order,
// besides its number, kind and hashes.
struct LineKind {
  std::string name;
  std::vector<LineField> fields;
};

const std::vector<LineKind>& LineKinds() {
  static const std::vector<LineKind> kinds = {
      // The run that was asked for. `planted`: an operation that was made wrong
      // on purpose.
      {"run",
       {{"version", Type::kWhole},
        {"backend", Type::kText},  // "cuda" or "simulated"
        {"program", Type::kText},  // code version
        {"minutes", Type::kNumber},
        {"planted", Type::kText}}},
      {"facts",
       {{"model", Type::kText},
        {"architecture", Type::kText},
        {"libraries", Type::kText},
        {"memory_bytes", Type::kWhole},
        {"date", Type::kText}}},  // UTC, "2026-11-22"
      {"probe",
       {{"name", Type::kText},
        {"passed", Type::kYesNo},
        {"answer", Type::kText}}},
      {"ceiling",
       {{"name", Type::kText},  // "copy", "product bf16", "product fp32"
        {"shape", Type::kText},
        {"unit", Type::kText},
        {"value", Type::kNumber, true}}},
      {"operation",
       {{"name", Type::kText},
        {"precision", Type::kText},  // the activations': "fp32", "bf16"
        {"sources", Type::kText},    // hash, bazel/hash_operation_sources.sh
        {"passed", Type::kYesNo},
        {"cases", Type::kWhole},
        {"failures", Type::kWhole},
        {"bound", Type::kText},          // id of the most used derivation
        {"utilisation", Type::kNumber},  // largest error/bound
        {"text", Type::kText}}},         // the first failure's
      {"check",
       {{"name", Type::kText},
        {"passed", Type::kYesNo},
        {"utilisation", Type::kNumber},
        {"text", Type::kText}}},
      {"time",
       {{"name", Type::kText},
        {"operation", Type::kText},
        {"precision", Type::kText},
        {"shape", Type::kText},
        {"flops", Type::kNumber},
        {"bytes", Type::kNumber},  // least amount to be moved
        {"seconds", Type::kNumber, true},
        {"share", Type::kNumber, true}}},  // share of the ceilings
      {"algorithm",
       {{"name", Type::kText},
        {"precision", Type::kText},
        {"shape", Type::kText},
        {"choice", Type::kWhole},  // index in the heuristic's list, from 0
        {"flops", Type::kNumber},
        {"seconds", Type::kNumber, true},
        {"share", Type::kNumber, true}}},
      {"step",
       {{"row", Type::kText},  // "sparse2": the router, its experts a token
        {"active_experts", Type::kNumber},  // of the first step
        {"precision", Type::kText},
        {"sequences", Type::kWhole},
        {"recompute", Type::kText},
        {"loss", Type::kNumber},
        {"memory_bytes", Type::kWhole},
        {"seconds", Type::kNumber, true},
        {"tokens_per_second", Type::kNumber, true}}},
      // The end of a stage: "passed", "failed", "not run", "crashed", "ran too
      // long", "stopped" (by a signal).
      {"stage",
       {{"name", Type::kText},
        {"outcome", Type::kText},
        {"text", Type::kText},
        {"seconds", Type::kNumber, true}}},
      {"end", {{"passed", Type::kYesNo}, {"failed", Type::kText}}}};
  return kinds;
}

const LineKind* FindKind(const std::string& name) {
  for (const LineKind& kind : LineKinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

bool HasType(const Json& value, Type type) {
  switch (type) {
    case Type::kText:
      return value.is_string();
    case Type::kNumber:
      // Numbers that JSON lacks are texts (json_lines.h).
      return value.is_number() || value == "inf" || value == "-inf" ||
             value == "nan";
    case Type::kWhole:
      // JSON may hold whole numbers that no int64_t is.
      return value.is_number_integer() &&
             (!value.is_number_unsigned() ||
              std::in_range<int64_t>(value.get<uint64_t>()));
    case Type::kYesNo:
      return value.is_boolean();
  }
  return false;
}

// Cuts long texts at a character boundary.
void CutTexts(Json* line) {
  for (auto& [key, value] : line->items()) {
    if (!value.is_string()) continue;
    std::string text = value.get<std::string>();
    if (text.size() <= kMaxGpuTextBytes) continue;
    size_t end = kMaxGpuTextBytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
      --end;
    }
    value = text.substr(0, end) + " [cut]";
  }
}

[[noreturn]] void Refuse(const std::string& place, const std::string& what) {
  throw DataError(place + ": " + what + "; " + kRemedy);
}

// The line without its number and hashes, after checking them.
Json Unwrapped(Json line, int64_t number, const std::string& previous,
               const std::string& place) {
  if (!IsSealed(line)) {
    Refuse(
        place,
        "the line was changed after it was written: its hash does not match");
  }
  if (!line.contains("line") || line["line"] != number) {
    Refuse(
        place,
        fmt::format(
            "the line should be number {}: a line is missing or occurs twice",
            number));
  }
  if (!line.contains("previous") || line["previous"] != previous) {
    Refuse(place, "the line does not follow the one before it");
  }
  for (const char* key : {"line", "previous", "sha256"}) line.erase(key);
  return line;
}

// When the day "2026-11-22" begins; nullopt if there is no such day.
std::optional<std::time_t> BeginOf(const std::string& day) {
  std::tm date = {};
  if (strptime(day.c_str(), "%Y-%m-%d", &date) == nullptr) return {};
  const std::time_t begin = timegm(&date);  // moves February 30 to March
  if (fmt::format("{:%Y-%m-%d}", date) != day) return {};
  return begin;
}

// Refuses impossible numbers: any below zero and, for measured fields, also
// zero, NaN and infinity. (A stage may take no time.)
void CheckNumbers(const Json& line, const std::string& place) {
  for (const LineField& field : FindKind(line["kind"])->fields) {
    const bool is_number =
        field.type == Type::kNumber || field.type == Type::kWhole;
    if (!is_number || !line.contains(field.name)) continue;
    const double value = JsonNumber(line, field.name, place);
    const bool measured = field.measured && line["kind"] != "stage";
    if (measured ? value > 0 && std::isfinite(value) : !(value < 0)) continue;
    Refuse(place, fmt::format("\"{}\" of kind \"{}\" cannot be {}", field.name,
                              line["kind"].get<std::string>(), value));
  }
}

// Refuses a share that does not follow from the ceilings before it.
void CheckShare(const Json& line, const GpuCeilings& ceilings,
                const std::string& place) {
  if (!line.contains("share")) return;
  const double share = JsonNumber(line, "share", place);
  const double expected = ceilings.ShareOf(line).value_or(0);
  if (std::abs(share - expected) <= 1e-9 * expected) return;
  Refuse(
      place,
      fmt::format(
          "the share of {} {} is {}, but its seconds and the ceilings give {}",
          line["name"].get<std::string>(), line["precision"].get<std::string>(),
          share, expected));
}

// Refuses an impossible outcome of an operation. A mistrusted operation did not
// pass, although none of its cases failed.
void CheckOperation(const Json& line, const std::string& place) {
  const int64_t cases = line["cases"], failures = line["failures"];
  const double used = JsonNumber(line, "utilisation", place);
  const bool in_range = cases > 0 && 0 <= failures && failures <= cases;
  if (in_range && (line["passed"] == false || (failures == 0 && used <= 1))) {
    return;
  }
  Refuse(place,
         fmt::format("{} cannot have {} with {} failures in {} cases and "
                     "a largest error/bound of {}",
                     line["name"].get<std::string>(),
                     line["passed"] == true ? "passed" : "failed", failures,
                     cases, used));
}

// Refuses a second finding about the same thing, and a stage of `verify` that
// passed although its line did not. (`bench` passes with a line that failed.)
class FindingsOnce {
 public:
  void Look(const Json& line, const std::string& place) {
    const std::string kind = line["kind"];
    if (kind == "operation" || kind == "time") {
      const std::string name = line["name"];
      const std::string precision = line["precision"];
      if (!seen_.insert({kind, name, precision}).second) {
        Refuse(place, fmt::format("there are two lines of kind \"{}\" about {} "
                                  "in {}",
                                  kind, name, precision));
      }
    }
    if (kind == "stage") {
      if (failed_ && line["outcome"] == "passed") {
        Refuse(place, fmt::format("stage \"{}\" cannot have passed with a line "
                                  "that did not",
                                  line["name"].get<std::string>()));
      }
      failed_ = false;
    } else if (kind == "operation" ||
               (kind == "check" &&
                line["name"].get<std::string>().starts_with("bits of "))) {
      failed_ |= line["passed"] != true;
    }
  }

 private:
  std::set<std::vector<std::string>> seen_;
  bool failed_ = false;  // a line of this stage
};

// Checks the rules that span lines: how a record begins and ends, that a
// simulated device has no times, that shares follow from the ceilings, that
// nothing occurs twice, and that the end names what failed.
void CheckRecord(const GpuRecord& record, const std::string& place) {
  const std::vector<Json>& lines = record.lines;
  if (lines.empty() || lines.front()["kind"] != "run") {
    Refuse(place, "a record begins with a line of kind \"run\"");
  }
  if (lines.front()["version"] != kGpuRecordVersion) {
    Refuse(place,
           fmt::format("the record is of version {}, and this program "
                       "reads version {}",
                       lines.front()["version"].dump(), kGpuRecordVersion));
  }
  if (lines.back()["kind"] != "end") {
    Refuse(place, "the run was cut off: there is no line of kind \"end\"");
  }
  const bool simulated = record.Only("run")["backend"] != "cuda";
  GpuCeilings ceilings;
  GpuFailures failures;
  FindingsOnce findings;
  for (const Json& line : lines) {
    if (line["kind"] == "operation") CheckOperation(line, place);
    for (const LineField& field : FindKind(line["kind"])->fields) {
      if (simulated && field.measured && line.contains(field.name)) {
        Refuse(place,
               fmt::format("a simulated device has no \"{}\"", field.name));
      }
    }
    CheckNumbers(line, place);
    ceilings.Look(line);
    CheckShare(line, ceilings, place);
    findings.Look(line, place);
    failures.Look(line);
    if (line["kind"] == "facts" && !BeginOf(line["date"])) {
      Refuse(place, "there is no day " + line["date"].dump());
    }
  }
  const Json& end = record.Only("end");
  Json expected = {{"failed", failures.Text()}};
  CutTexts(&expected);
  // A run whose time ran out has not passed, either, but names no failure.
  if (end["failed"] != expected["failed"] ||
      (!failures.empty() && end["passed"] == true)) {
    Refuse(place,
           "the line of kind \"end\" does not match the failures before it");
  }
}

// The record that `text` holds, each line as unwrap(line, number, place) leaves
// it.
GpuRecord ReadLines(const std::string& text, const std::string& name,
                    const std::function<Json(const Json&, int64_t,
                                             const std::string&)>& unwrap) {
  GpuRecord record;
  for (size_t begin = 0; begin < text.size();) {
    const auto number = static_cast<int64_t>(record.lines.size());
    const std::string place = fmt::format("{}:{}", name, number + 1);
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      Refuse(place, "the last line is torn: the run was cut off");
    }
    const std::string written = text.substr(begin, end - begin);
    const Json line = ParseJsonObject(written);
    if (line.is_null()) Refuse(place, "the line is no JSON object");
    if (JsonLine(line) != written) {
      Refuse(place, "the line is not formatted as it was written");
    }
    record.lines.push_back(unwrap(line, number, place));
    CheckGpuLine(record.lines.back(), place);
    begin = end + 1;
  }
  CheckRecord(record, name);
  return record;
}

}  // namespace

void CheckGpuLine(const Json& line, const std::string& place) {
  const Json kind_name =
      line.is_object() && line.contains("kind") ? line["kind"] : Json(nullptr);
  const LineKind* kind =
      kind_name.is_string() ? FindKind(kind_name.get<std::string>()) : nullptr;
  if (kind == nullptr) {
    Refuse(place, "a line of kind " + kind_name.dump() +
                      " is unknown to this program");
  }
  auto field = kind->fields.begin();
  for (const auto& [key, value] : line.items()) {
    if (key == "kind") continue;
    while (field != kind->fields.end() && field->name != key &&
           field->measured) {
      ++field;
    }
    if (field == kind->fields.end() || field->name != key) {
      Refuse(place, fmt::format("\"{}\" does not belong here, in a line of "
                                "kind \"{}\"",
                                key, kind->name));
    }
    if (!HasType(value, field->type)) {
      Refuse(place, fmt::format("\"{}\" of kind \"{}\" cannot be {}", key,
                                kind->name, value.dump()));
    }
    ++field;
  }
  const auto missing =
      std::find_if(field, kind->fields.end(),
                   [](const LineField& each) { return !each.measured; });
  if (missing != kind->fields.end()) {
    Refuse(place, fmt::format("a line of kind \"{}\" has no \"{}\"", kind->name,
                              missing->name));
  }
}

void GpuRecordWriter::RequireNew(const std::filesystem::path& path) {
  if (std::filesystem::exists(path)) {
    throw EnvironmentError(path.string() +
                           ": there is a record already; name another file, "
                           "or move that one away");
  }
}

GpuRecordWriter::GpuRecordWriter(const std::filesystem::path& path)
    : path_(path) {
  RequireNew(path);
  lines_ = std::make_unique<JsonLinesWriter>(path);
}

void GpuRecordWriter::Write(Json line) {
  const std::string place = fmt::format("{}:{}", path_.string(), number_ + 1);
  CheckGpuLine(line, place);
  CutTexts(&line);
  Json whole = {{"line", number_}, {"previous", previous_}};
  whole.update(line);
  whole = Sealed(std::move(whole));
  const auto size = static_cast<int64_t>(JsonLine(whole).size()) + 1;
  const bool is_end = line["kind"] == "stage" || line["kind"] == "end";
  if (bytes_ + size > kMaxGpuRecordBytes - (is_end ? 0 : kRoomForTheEnd)) {
    throw DataError(place + ": the record is full");
  }
  lines_->Write(whole);
  lines_->Sync();
  previous_ = whole["sha256"].get<std::string>();
  bytes_ += size;
  ++number_;
}

const Json& GpuRecord::Only(const std::string& kind) const {
  const Json* found = nullptr;
  for (const Json& line : lines) {
    if (line["kind"] != kind) continue;
    if (found != nullptr) {
      throw DataError("the record has two lines of kind \"" + kind + "\"; " +
                      kRemedy);
    }
    found = &line;
  }
  if (found == nullptr) {
    throw DataError("the record has no line of kind \"" + kind + "\"; " +
                    kRemedy);
  }
  return *found;
}

std::vector<Json> GpuRecord::All(const std::string& kind) const {
  std::vector<Json> all;
  std::ranges::copy_if(lines, std::back_inserter(all),
                       [&](const Json& line) { return line["kind"] == kind; });
  return all;
}

GpuRecord ReadGpuRecord(const std::filesystem::path& path) {
  const std::string name = path.string();
  if (const int64_t size = InputFile(path).size(); size > kMaxGpuRecordBytes) {
    Refuse(name, fmt::format("{} bytes are too many: a record has at most {}",
                             size, kMaxGpuRecordBytes));
  }
  std::string previous;
  GpuRecord record = ReadLines(
      ReadWholeFile(path), name,
      [&](const Json& line, int64_t number, const std::string& place) {
        Json unwrapped = Unwrapped(line, number, previous, place);
        previous = line["sha256"].get<std::string>();
        return unwrapped;
      });
  constexpr std::time_t kDay = 24 * 60 * 60;
  const std::time_t now = std::time(nullptr);
  for (const Json& facts : record.All("facts")) {
    if (*BeginOf(facts["date"]) <= now + kDay) continue;
    throw DataError(fmt::format(
        "{}: the record is dated {}, but this machine's date is {:%Y-%m-%d}; "
        "set the clock that is wrong, and if it is the other machine's, run "
        "run_all.sh there again",
        name, facts["date"].get<std::string>(), fmt::gmtime(now)));
  }
  return record;
}

std::string GpuRecordText(const GpuRecord& record) {
  std::string text;
  for (const Json& line : record.lines) text += JsonLine(line) + "\n";
  return text;
}

GpuRecord ParseGpuRecord(const std::string& text, const std::string& place) {
  return ReadLines(
      text, place,
      [](const Json& line, int64_t, const std::string&) { return line; });
}

}  // namespace softmoe::golden
