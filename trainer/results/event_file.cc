// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/event_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/json_lines.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// For each byte, the remainder after eight shifts, bits reversed.
constexpr std::array<uint32_t, 256> kCrcTable = [] {
  constexpr uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    }
    table[byte] = crc;
  }
  return table;
}();

// ---- Numbers and fields as bytes.

template <typename Unsigned>
std::string LittleEndian(Unsigned value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(value); ++i) {
    bytes += static_cast<char>(value >> 8 * i & 0xff);
  }
  return bytes;
}

// Seven bits per byte, the lowest first; the highest bit says that more follow.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(value | 0x80);
  }
  return bytes + static_cast<char>(value);
}

// A key precedes the bytes of a field: its number, and how they are stored.
enum class Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
std::string Key(int field, Wire wire) {
  return Varint(static_cast<uint64_t>(field << 3 | static_cast<int>(wire)));
}

std::string Bytes(int field, std::string_view content) {
  return (Key(field, Wire::kBytes) + Varint(content.size())).append(content);
}

// A Summary with one Value.
std::string Scalar(std::string_view tag, double value) {
  const auto single = static_cast<float>(value);
  return Bytes(1, Bytes(1, tag) + Key(2, Wire::kFixed32) +
                      LittleEndian(std::bit_cast<uint32_t>(single)));
}

std::string Record(const std::string& event) {
  const std::string length = LittleEndian(uint64_t{event.size()});
  return length + LittleEndian(MaskedCrc32c(length)) + event +
         LittleEndian(MaskedCrc32c(event));
}

std::string FirstRecord() { return Record(Bytes(3, "brain.Event:2")); }

std::string SummaryRecord(double wall_time, int64_t step,
                          const std::string& summary) {
  return Record(Key(1, Wire::kFixed64) +
                LittleEndian(std::bit_cast<uint64_t>(wall_time)) +
                Key(2, Wire::kVarint) + Varint(static_cast<uint64_t>(step)) +
                Bytes(5, summary));
}

// ---- Lines of a log.

class LogReader {
 public:
  // With `check`, every line must pass it.
  LogReader(fs::path path, std::optional<LogCheck> check)
      : path_(std::move(path)), check_(std::move(check)) {}

  std::string Read() {
    std::string bytes = FirstRecord();
    VisitJsonLines(path_, [&](Json&& line, int64_t number) {
      place_ = fmt::format("{}:{}", path_.string(), number);
      if (check_) check_->Line(line, place_);
      const auto kind = line.find("kind");
      const Json none;
      const Json& of = kind == line.end() ? none : *kind;
      if (of == "run") {
        CheckVersion(line);
      } else if (of == "step") {
        const std::string summary = OfStep(line);
        seconds_ += JsonNumber(line, metrics::kStepSeconds.name, place_);
        bytes += SummaryRecord(seconds_, StepOf(line), summary);
      } else if (of == "validation") {
        bytes += SummaryRecord(seconds_, StepOf(line), OfValidation(line));
      } else {
        Fail("'kind' is not run, step or validation");
      }
    });
    return bytes;
  }

 private:
  [[noreturn]] void Fail(const std::string& problem) const {
    throw LogError(place_, problem);
  }

  void CheckVersion(const Json& line) {
    const auto version = line.find("version");
    if (version == line.end()) Fail("a log without 'version'");
    if (*version == kMetricsLogVersion) return;
    Fail(fmt::format("a log of version {}, but this program reads version {}",
                     version->dump(), kMetricsLogVersion));
  }

  int64_t StepOf(const Json& line) const {
    const auto step = line.find("step");
    if (step == line.end() || !step->is_number_integer()) {
      Fail("'step' is not an integer");
    }
    return step->get<int64_t>();
  }

  // Whether the line is older than the metric.
  static bool Lacks(const Json& line, const Metric& metric) {
    return metric.later && !line.contains(metric.name);
  }

  std::string OfStep(const Json& line) const {
    std::string summary;
    VisitStepMetrics([&](const Metric& metric, auto member) {
      if (Lacks(line, metric)) return;
      if constexpr (std::is_same_v<decltype(member), double StepRecord::*>) {
        summary += Scalar(fmt::format("step/{}", metric.name),
                          JsonNumber(line, metric.name, place_));
      } else {
        const auto list = line.find(metric.name);
        if (list == line.end() || !list->is_array()) {
          Fail(fmt::format("'{}' is not a list", metric.name));
        }
        for (size_t l = 0; l < list->size(); ++l) {
          const Json number = WithNonFinite((*list)[l]);
          if (!number.is_number()) {
            Fail(fmt::format("'{}' contains something other than a number",
                             metric.name));
          }
          summary += Scalar(fmt::format("{}/layer_{}", metric.name, l),
                            number.get<double>());
        }
      }
    });
    return summary;
  }

  std::string OfValidation(const Json& line) const {
    std::string summary;
    VisitEvaluationMetrics([&](const Metric& metric, auto) {
      if (Lacks(line, metric)) return;
      summary += Scalar(fmt::format("validation/{}", metric.name),
                        JsonNumber(line, metric.name, place_));
    });
    return summary;
  }

  const fs::path path_;
  std::optional<LogCheck> check_;
  std::string place_;
  double seconds_ = 0;
};

// Appends to a file of `size` bytes.
void Append(const fs::path& path, size_t size, std::string_view bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) throw FileError("write", path, errno);
  int error = WriteAll(file, bytes);
  if (error == 0 && fsync(file) != 0) error = errno;
  if (error != 0) {
    // If this fails, too, the next update completes the torn record.
    [[maybe_unused]] const int result =
        ftruncate(file, static_cast<off_t>(size));
  }
  close(file);
  if (error != 0) throw FileError("write", path, error);
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc = kCrcTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

uint32_t MaskedCrc32c(std::string_view bytes) {
  return std::rotr(Crc32c(bytes), 15) + 0xa282ead8;
}

std::string EventFileBytes(const fs::path& metrics) {
  return LogReader(metrics, std::nullopt).Read();
}

EventFileChange UpdateEventFile(const fs::path& metrics,
                                const std::string& config_hash,
                                const fs::path& events) {
  const std::string bytes = LogReader(metrics, LogCheck(config_hash)).Read();
  RequireRegularOrAbsent(events);
  if (fs::exists(events)) {
    const std::string there = ReadWholeFile(events);
    if (there == bytes) return EventFileChange::kNone;
    // Appends also if a killed update left only part of its last record.
    if (bytes.starts_with(there)) {
      Append(events, there.size(),
             std::string_view(bytes).substr(there.size()));
      return EventFileChange::kLonger;
    }
  }
  WriteFileAtomically(events, bytes);
  return EventFileChange::kNew;
}

}  // namespace softmoe::trainer
