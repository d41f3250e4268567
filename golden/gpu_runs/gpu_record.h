// SPDX-License-Identifier: Apache-2.0
//
// gpu_record.h - the record of a run of all checks on a device: JSON lines, one
// for each finding, written at once (README.md).
//
// Each line has its number, the previous line's hash and its own, so changed,
// missing and torn lines are noticed. The first line is of kind "run", the last
// one of kind "end".
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
// Longer texts, such as a tool's output, are cut.
inline constexpr size_t kMaxGpuTextBytes = 4000;

// Throws DataError, naming `place`, if `line`, still without number and hashes,
// is not a line of such a record: of a known kind, with its fields in order, of
// which only those of measurements may be missing.
void CheckGpuLine(const nlohmann::ordered_json& line, const std::string& place);

class GpuRecordWriter {
 public:
  // Throws EnvironmentError if there is already a file at `path`.
  static void RequireNew(const std::filesystem::path& path);

  // Throws as RequireNew, and if the file cannot be made.
  explicit GpuRecordWriter(const std::filesystem::path& path);

  // Writes {"kind": ..., fields} and cuts long texts. Throws DataError as
  // CheckGpuLine does, and if there is no room for the line (some is reserved
  // for kinds "stage" and "end"); EnvironmentError if the disk is full.
  void Write(nlohmann::ordered_json line);

 private:
  std::filesystem::path path_;
  std::unique_ptr<JsonLinesWriter> lines_;
  int64_t number_ = 0, bytes_ = 0;
  std::string previous_;
};

struct GpuRecord {
  std::vector<nlohmann::ordered_json> lines;  // without numbers and hashes

  // The only line of this kind. Throws DataError if there are several or none.
  const nlohmann::ordered_json& Only(const std::string& kind) const;
  std::vector<nlohmann::ordered_json> All(const std::string& kind) const;
};

// Throws EnvironmentError if the file cannot be read; DataError, with the place
// and the remedy, if it is too large, torn, unfinished, altered in any byte, or
// dated more than a day after this machine's clock.
GpuRecord ReadGpuRecord(const std::filesystem::path& path);

// Returns the lines, one below the other: the part that is kept (gpu_runs.h).
std::string GpuRecordText(const GpuRecord& record);

// Parses such a text, and no other: GpuRecordText gives the same bytes again.
// Throws DataError, with the line after `place`.
GpuRecord ParseGpuRecord(const std::string& text, const std::string& place);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GPU_RUNS_GPU_RECORD_H_
