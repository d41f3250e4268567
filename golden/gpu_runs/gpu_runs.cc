// SPDX-License-Identifier: Apache-2.0
//
//   /lines   u8 [bytes]: GpuRecordText
//
// Stored as bytes, because one long dataset is compressed.
#include "golden/gpu_runs/gpu_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/sha256.h"
#include "core/hdf5/hdf5_file.h"
#include "core/text/text_table.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;

const Hdf5Kind kKind = {"gpu-run", 2};
constexpr char kLines[] = "/lines";

// ---- The table

std::string DateOf(const GpuRecord& run) { return run.Only("facts")["date"]; }

// How a stage came to a bad end: "failed", "crashed", "ran too long"; "" if it
// passed, did not run, or was stopped.
std::string BadEnd(const Json& stage) {
  const std::string outcome = stage["outcome"];
  const bool fine =
      outcome == "passed" || outcome == "not run" || outcome == "stopped";
  return fine ? "" : outcome;
}

constexpr char kSameBits[] = "bits as simulated";

// What a run found about an operation's bits: kSameBits, or what is wrong; ""
// if it did not check them.
std::string BitsOf(const GpuRecord& run, const std::string& operation,
                   const std::string& precision) {
  const std::string name = NameOfBits(operation, precision);
  for (const Json& line : run.lines) {
    if (!line.contains("name") || line["name"] != name) continue;
    if (line["kind"] == "check") {
      return line["passed"] == true ? kSameBits : "other bits than simulated";
    }
    const std::string end = BadEnd(line);
    return end.empty() ? "" : "bits " + end;
  }
  return "";
}

// The lines of one operation, for each precision, plus {"precision", "outcome"}
// for a stage that came to a bad end and left no line that failed, and for a
// precision that has wrong bits but no line.
std::vector<Json> LinesOf(const GpuRecord& run, const std::string& operation) {
  const std::string stage = "operation " + operation + " ";
  std::vector<Json> lines;
  for (const Json& line : run.lines) {
    if (line["kind"] == "operation" && line["name"] == operation) {
      lines.push_back(line);
    }
    if (line["kind"] != "stage") continue;
    const std::string name = line["name"];
    if (!name.starts_with(stage)) continue;
    const std::string precision = name.substr(stage.size());
    // A failure has a line of its own, before that of its stage.
    if (!lines.empty() && lines.back()["precision"] == precision &&
        !lines.back().value("passed", true)) {
      continue;
    }
    if (const std::string end = BadEnd(line); !end.empty()) {
      lines.push_back(Json{{"precision", precision}, {"outcome", end}});
    }
  }
  for (const char* precision : {"fp32", "bf16"}) {
    const std::string bits = BitsOf(run, operation, precision);
    const bool alone = std::ranges::none_of(lines, [&](const Json& line) {
      return line["precision"] == precision;
    });
    if (alone && !bits.empty() && bits != kSameBits) {
      lines.push_back(Json{{"precision", precision}, {"outcome", bits}});
    }
  }
  return lines;
}

// "rmsnorm 1.25 ms (83 %), rmsnorm, backward 2.5 ms (80 %)" in one precision;
// "" if no time was taken.
std::string TimesOf(const GpuRecord& run, const std::string& operation,
                    const std::string& precision) {
  std::vector<std::string> times;
  for (const Json& line : run.All("time")) {
    if (line["operation"] != operation || line["precision"] != precision ||
        !line.contains("seconds")) {
      continue;
    }
    std::string text =
        fmt::format("{} {:.3g} ms", line["name"].get<std::string>(),
                    1e3 * JsonNumber(line, "seconds", "time"));
    if (line.contains("share")) {
      text +=
          fmt::format(" ({:.0f} %)", 100 * JsonNumber(line, "share", "time"));
    }
    times.push_back(text);
  }
  return fmt::format("{}", fmt::join(times, ", "));
}

// One run's finding about an operation.
std::string Finding(const GpuRecord& run, const std::string& operation,
                    const std::vector<Json>& lines) {
  std::vector<std::string> parts;
  for (const Json& line : lines) {
    const std::string precision = line["precision"];
    if (line.contains("outcome")) {
      parts.push_back(fmt::format("{} **{}**", precision,
                                  line["outcome"].get<std::string>()));
      continue;
    }
    if (line["passed"] == false) {
      parts.push_back(fmt::format("{} **FAILED** ({} of {} cases)", precision,
                                  line["failures"].dump(),
                                  line["cases"].dump()));
      continue;
    }
    std::string text = fmt::format(
        "{}: {} cases, largest error/bound {:.2g}", precision,
        line["cases"].dump(), JsonNumber(line, "utilisation", "operation"));
    if (const std::string bits = BitsOf(run, operation, precision);
        !bits.empty()) {
      text += bits == kSameBits ? ", " + bits : ", **" + bits + "**";
    }
    if (const std::string times = TimesOf(run, operation, precision);
        !times.empty()) {
      text += "; " + times;
    }
    parts.push_back(text);
  }
  const Json& facts = run.Only("facts");
  return fmt::format("{}, {}: {}", facts["model"].get<std::string>(),
                     DateOf(run), fmt::join(parts, "; "));
}

// What runs on each model of device found on the latest day of each precision,
// one run below the other: a pass must not hide a failure of the same day, nor
// one of another precision.
std::string StateOf(const std::vector<const GpuRecord*>& latest_first,
                    const std::string& operation, const std::string& hash) {
  std::vector<std::string> findings;
  // Days of the latest runs, by model and precision.
  std::map<std::pair<std::string, std::string>, std::string> days;
  std::string since;
  for (const GpuRecord* run : latest_first) {
    const std::vector<Json> lines = LinesOf(*run, operation);
    if (lines.empty()) continue;
    // An outcome may be of these sources, too, and must not be hidden.
    if (std::ranges::all_of(lines, [&](const Json& line) {
          return line.contains("outcome") || line["sources"] == hash;
        })) {
      const std::string model = run->Only("facts")["model"];
      std::vector<Json> latest;
      for (const Json& line : lines) {
        const auto first =
            days.try_emplace({model, line["precision"].get<std::string>()},
                             DateOf(*run))
                .first;
        if (first->second == DateOf(*run)) latest.push_back(line);
      }
      if (!latest.empty()) findings.push_back(Finding(*run, operation, latest));
      continue;
    }
    if (since.empty()) {
      since = " since its sources changed, after " + DateOf(*run);
    }
  }
  if (findings.empty()) return "not verified on a device" + since;
  return fmt::format("{}", fmt::join(findings, "<br>"));
}

}  // namespace

std::string NameOfBits(const std::string& operation,
                       const std::string& precision) {
  return "bits of " + operation + " " + precision;
}

void RequireGolden(const GpuRecord& record, AcceptedRuns accepted,
                   const std::string& place) {
  const Json& run = record.Only("run");
  if (accepted == AcceptedRuns::kOfDevices && run["backend"] != "cuda") {
    throw DataError(place +
                    ": the record is of a simulated device, which "
                    "shows nothing of a real one; run run_all.sh on a "
                    "machine with a GPU");
  }
  if (run["planted"] != "") {
    throw DataError(place + ": in this run " +
                    run["planted"].get<std::string>() +
                    " was told to be wrong; run run_all.sh without --plant");
  }
  const std::string date = record.Only("facts")["date"];
  if (accepted == AcceptedRuns::kOfDevices && date < "2026") {
    throw DataError(
        place + ": the record is dated " + date +
        ", before run_all.sh existed; set that machine's clock, and run "
        "run_all.sh again");
  }
}

std::string GpuRunName(const GpuRecord& record) {
  const Json& facts = record.Only("facts");
  return fmt::format("{}-{}-{}", facts["date"].get<std::string>(),
                     facts["architecture"].get<std::string>(),
                     Sha256Hex(GpuRecordText(record)).substr(0, 8));
}

void WriteGpuRun(const std::filesystem::path& path, const GpuRecord& record) {
  Hdf5Writer file(path, kKind);
  file.Bytes(kLines, GpuRecordText(record));
  file.Commit();
}

GpuRecord ReadGpuRun(const std::filesystem::path& path) {
  const Hdf5Reader file(path, kKind);
  std::string lines;
  file.Bytes(kLines, lines);
  return ParseGpuRecord(lines, fmt::format("{}: {}", path.string(), kLines));
}

OperationSources ParseOperationSources(const std::string& text) {
  OperationSources sources;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string operation, hash, more;
    if (!(words >> operation >> hash) || hash.size() != 64 || words >> more) {
      throw DataError("operation_sources.txt: '" + line +
                      "' is no operation with a hash; build again");
    }
    sources.emplace_back(operation, hash);
  }
  return sources;
}

std::string GpuTable(const std::vector<GpuRecord>& runs,
                     const OperationSources& sources) {
  std::vector<const GpuRecord*> latest_first;
  for (const GpuRecord& run : runs) latest_first.push_back(&run);
  std::ranges::stable_sort(latest_first,
                           [](const GpuRecord* a, const GpuRecord* b) {
                             return DateOf(*a) > DateOf(*b);
                           });
  TextTable table({"operation", "on a device"});
  for (const auto& [operation, hash] : sources) {
    table.Add({operation, StateOf(latest_first, operation, hash)});
  }
  return table.Markdown();
}

}  // namespace softmoe::golden
