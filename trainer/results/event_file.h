// SPDX-License-Identifier: Apache-2.0
//
// event_file.h - metrics.jsonl as an event file, which TensorBoard reads.
//
// A file is a sequence of records (TensorFlow's TFRecord):
//
//   length   uint64, bytes of `data`       all numbers little-endian
//   check    uint32, MaskedCrc32c of the 8 bytes before
//   data     an Event
//   check    uint32, MaskedCrc32c of `data`
//
// An Event is a protocol buffer, written as the protobuf library writes it:
//
//   Event          double wall_time = 1; int64 step = 2;
//                  string file_version = 3;  in the first, which has only that
//                  Summary summary = 5;      in the others: a line of the log
//   Summary        repeated Value value = 1;
//   Summary.Value  string tag = 1; float simple_value = 2;
//
// Tags have the names of metrics.h: "step/loss", "validation/loss", and for
// lists a chart with a line for each layer, "allocation/layer_0". wall_time is
// the sum of the seconds of the steps so far in the log, so that equal logs
// give equal bytes.
#ifndef SOFTMOE_TRAINER_RESULTS_EVENT_FILE_H_
#define SOFTMOE_TRAINER_RESULTS_EVENT_FILE_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace softmoe::trainer {

// TensorBoard reads files whose names contain "tfevents".
inline constexpr char kEventFileName[] = "events.out.tfevents.softmoe";

// Return the CRC-32C (Castagnoli polynomial) of RFC 3720, and the same rotated
// and shifted, as records hold it, so that data that contain their own checksum
// are no special case.
uint32_t Crc32c(std::string_view bytes);
uint32_t MaskedCrc32c(std::string_view bytes);

// Returns the bytes of the event file for a metrics.jsonl of any run, with any
// of its steps. A last line without '\n' is left for the next time. The bytes
// for a longer log begin with those for a shorter one.
// Errors   EnvironmentError if the log cannot be read, DataError (FILE:LINE) if
//          a line does not belong to a log or lacks a metric, or if the log
//          is of another version.
std::string EventFileBytes(const std::filesystem::path& metrics);

enum class EventFileChange {
  kNone,
  kLonger,  // records were appended: a TensorBoard that reads it sees them
  kNew,     // written whole: it was not there, or the log has other lines now
};

// Makes `events` the event file of `metrics`, the log of the run with this
// configuration. One writer at a time. Throws what EventFileBytes throws,
// DataError (FILE:LINE) if the log is another run's or lacks a step, and
// EnvironmentError if `events` cannot be written; it is then unchanged.
EventFileChange UpdateEventFile(const std::filesystem::path& metrics,
                                const std::string& config_hash,
                                const std::filesystem::path& events);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_EVENT_FILE_H_
