// SPDX-License-Identifier: Apache-2.0
//
// gpu_record.h - what a run of all checks on a device leaves: JSON lines, one
// for each thing that was found, written at once (README.md).
//
// Each line has its number, the hash of the line before it, and its own: so what
// was changed, left out or torn is noticed. The first line is of kind "run", the
// last one of kind "end".
#ifndef SOFTMOE_GOLDEN_GPU_RUNS_GPU_RECORD_H_
#define SOFTMOE_GOLDEN_GPU_RUNS_GPU_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/files/json_lines.h"

namespace softmoe::golden {

inline constexpr int64_t kGpuRecordVersion = 1;
inline constexpr int64_t kMaxGpuRecordBytes = int64_t{16} << 20;
// Longer texts are cut: what a tool printed, say.
inline constexpr size_t kMaxGpuTextBytes = 4000;

struct GpuField {
  // kLongText: of many lines, some of them long.
  enum class Type { kText, kLongText, kNumber, kWhole, kYesNo };
  std::string name;
  Type type;
  // Left out where it was not measured: on a simulated device no time is.
  bool measured = false;
};

// What a line may hold: exactly the fields of its kind, in this order, besides
// its number, its kind and its hashes.
struct GpuLineKind {
  std::string name;
  std::vector<GpuField> fields;
};
const std::vector<GpuLineKind>& GpuLineKinds();

// Throws DataError, naming `place`, if `line`, which needs no number and no
// hashes yet, is no line of such a record.
void CheckGpuLine(const nlohmann::ordered_json& line, const std::string& place);

class GpuRecordWriter {
 public:
  // Throws EnvironmentError if there is a file at `path`.
  static void RequireNew(const std::filesystem::path& path);

  // Throws the same, and if no file can be made.
  explicit GpuRecordWriter(const std::filesystem::path& path);

  // Writes {"kind": ..., fields}. Texts are cut. Throws DataError as
  // CheckGpuLine, and for a line too many: room is kept for lines of kind
  // "stage" and "end"; EnvironmentError if the disk is full.
  void Write(nlohmann::ordered_json line);

 private:
  std::filesystem::path path_;
  std::unique_ptr<JsonLinesWriter> lines_;
  int64_t number_ = 0, bytes_ = 0;
  std::string previous_;
};

struct GpuRecord {
  std::vector<nlohmann::ordered_json> lines;  // without numbers and hashes

  // The only line of this kind. Throws DataError if there are more, or none.
  const nlohmann::ordered_json& Only(const std::string& kind) const;
  std::vector<nlohmann::ordered_json> All(const std::string& kind) const;
};

// Throws EnvironmentError if the file cannot be read; DataError, with the place
// and what to do, if it is too large, torn, not ended, or if any of its bytes is
// not what was written.
GpuRecord ReadGpuRecord(const std::filesystem::path& path);

// The rules for more than one line: how a record begins and ends, that no
// simulated device has times. Throws DataError naming `place`.
void CheckGpuRecord(const GpuRecord& record, const std::string& place);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GPU_RUNS_GPU_RECORD_H_
