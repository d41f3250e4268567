// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/code_version.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/process/process.h"
#include "core/process/stop_signal.h"
#include "core/stoppable_output.h"
#include "core/text/text_table.h"
#include "golden/gpu_runs/gpu_conclusions.h"
#include "golden/gpu_runs/gpu_record.h"
#include "property_tests/gpu/stage_list.h"

namespace softmoe::gpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kNotRun[] = "not run";
constexpr char kTooLong[] = "ran too long";
constexpr char kNoTime[] = "no time was left";

// With less time left than this, no stage is started.
constexpr double kLeastSeconds = 5;

// The most stages at a time. Each takes a core of the host and, for its context
// alone, half a gigabyte of device memory.
constexpr unsigned kMostAtATime = 8;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Prints if possible: if nobody is reading, the record still goes on, and after
// a signal it does not wait for a reader.
void Print(std::string_view text, std::FILE* file = stdout) {
  PrintUnlessStopped(file, text);
}

// The beginning and the end of a text that is too long.
class Excerpt {
 public:
  void Add(std::string_view text) {
    const size_t room = kPart - std::min(kPart, begin_.size());
    begin_ += text.substr(0, room);
    if (text.size() > room) end_ += text.substr(room);
    if (end_.size() > 2 * kPart) {
      end_.erase(0, end_.size() - kPart);
      cut_ = true;
    }
  }
  std::string Text() const {
    if (end_.size() <= kPart && !cut_) return begin_ + end_;
    return begin_ + "\n[...]\n" + end_.substr(end_.size() - kPart);
  }

 private:
  static constexpr size_t kPart = 1500;
  std::string begin_, end_;
  bool cut_ = false;
};

// How a stage ended.
struct StageEnd {
  std::string outcome;
  std::string text;
  int exit_status = 0;
  double seconds = 0;
};

using OnLine = std::function<void(Line line)>;

// Splits a stage's stdout into lines of the record and others.
class OutputReader {
 public:
  OutputReader(OnLine on_line, Excerpt* rest)
      : on_line_(std::move(on_line)), rest_(rest) {}

  void Add(std::string_view bytes) {
    pending_ += bytes;
    for (size_t end = pending_.find('\n'); end != std::string::npos;
         end = pending_.find('\n')) {
      const std::string text = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      Line line = text.starts_with('{') ? ParseJsonObject(text) : Line();
      if (line.is_object()) {
        on_line_(std::move(line));
      } else {
        rest_->Add(text + "\n");
      }
    }
  }

 private:
  OnLine on_line_;
  Excerpt* rest_;
  std::string pending_;
};

std::vector<std::string> CommandOf(const Stage& stage, double seconds) {
  std::vector<std::string> command = stage.command;
  if (stage.told > 0) {
    command.insert(command.end(),
                   {"--seconds", std::to_string(stage.told * seconds)});
  }
  return command;
}

// Whether a program with this exit status found nothing wrong where it looked.
bool FoundNothingWrong(int status) {
  for (const ExitCode code :
       {ExitCode::kDone, ExitCode::kInconclusive, ExitCode::kMistrusted}) {
    if (status == static_cast<int>(code)) return true;
  }
  return false;
}

// What the report of a stage covers.
enum class Covered { kAll, kPartThatCounts, kTooLittle };

// Passes on what follows from the report of `stage`; nothing if the program
// found nothing wrong but checked too little. Throws DataError if the report is
// missing, unreadable, or of another shape.
Covered ReadReport(const Stage& stage, int status, const OnLine& on_line) {
  if (!std::filesystem::exists(stage.report)) {
    throw DataError("the stage left no report");
  }
  Line report;
  try {
    report = ParseJsonObject(ReadWholeFile(stage.report));
  } catch (const EnvironmentError& error) {
    throw DataError(error.what());
  }
  if (!report.is_object()) {
    throw DataError("the stage's report is not a JSON object");
  }
  Covered covered = Covered::kAll;
  std::vector<Line> lines;
  try {
    if (FoundNothingWrong(status) && stage.whole && !stage.whole(report)) {
      if (!stage.part_counts || status != 0) return Covered::kTooLittle;
      covered = Covered::kPartThatCounts;
    }
    lines = stage.lines_of(report);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // at(), get(), stoi(), ...
    throw DataError(fmt::format(
        "the stage's report is not of the expected shape: {}", error.what()));
  }
  for (Line& line : lines) on_line(std::move(line));
  return covered;
}

// Removes the report, which has been read or, where the program was ended or
// crashed, is a part of one.
void RemoveReport(const Stage& stage) {
  if (stage.report.empty()) return;
  std::error_code ignored;
  std::filesystem::remove(stage.report, ignored);
  RemoveLeftoversOf(stage.report);
}

StageEnd RunOne(const Stage& stage, double seconds, const StopSignal& signal,
                const OnLine& on_line) {
  if (!stage.why_not.empty()) return {kNotRun, stage.why_not};
  const auto begin = Clock::now();
  Excerpt text;
  std::string defect;  // of a line
  OutputReader reader(
      [&](Line line) {
        try {
          on_line(std::move(line));
        } catch (const DataError& error) {
          if (defect.empty()) defect = error.what();
        }
      },
      &text);
  ProcessOptions options;
  options.arguments = CommandOf(stage, seconds);
  options.folder = stage.folder;
  options.output = ProcessOptions::Output::kApart;
  options.own_group = true;
  std::optional<Process> started;
  try {
    if (!stage.report.empty()) std::filesystem::remove(stage.report);
    if (!stage.results.empty()) std::filesystem::remove_all(stage.results);
    started.emplace(options);
  } catch (const std::runtime_error& error) {
    if (!stage.shares_device) Print(error.what() + std::string("\n"), stderr);
    return {"failed", error.what(), static_cast<int>(ExitCode::kEnvironment)};
  }
  Process& process = *started;
  // Time in which this process waits for its own reader is not the stage's.
  double own_seconds = 0;
  const auto take = [&](Process::Stream stream, std::string_view bytes) {
    const auto from = Clock::now();
    if (stream == Process::Stream::kOutput) {
      reader.Add(bytes);
    } else {
      text.Add(bytes);
      // Output of concurrent stages could not be told apart.
      if (!stage.shares_device) Print(bytes, stderr);
    }
    own_seconds += SecondsSince(from);
  };
  bool open = true;
  while (open) {
    const double left = seconds + own_seconds - SecondsSince(begin);
    if (left <= 0 || signal.requested()) {
      const bool ended = process.Kill();
      if (signal.requested()) return {"stopped", text.Text()};
      return {kTooLong,
              fmt::format("killed after {:.0f} s{}\n{}", seconds,
                          ended ? "" : ", and did not end", text.Text())};
    }
    // Polls only briefly, since a signal may come.
    open = process.Listen(
        static_cast<int>(std::ceil(1000 * std::min(left, 0.2))), take);
  }
  if (!process.Wait(std::max(1.0, seconds - SecondsSince(begin)))) {
    process.Kill();
    return {kTooLong, text.Text()};
  }
  if (!defect.empty()) return {"failed", defect};
  if (process.Signal() != 0) {
    return {"crashed",
            fmt::format("{}\n{}", strsignal(process.Signal()), text.Text())};
  }
  const int status = process.ExitStatus();
  if (stage.may_not_fit && status == static_cast<int>(ExitCode::kEnvironment)) {
    return {kNotRun, text.Text(), status};  // an unfinished report says nothing
  }
  if (!stage.report.empty()) {
    try {
      const Covered covered = ReadReport(stage, status, on_line);
      if (covered == Covered::kTooLittle) {
        return {kTooLong,
                "it ended before it had looked at all\n" + text.Text(), status};
      }
      if (covered == Covered::kPartThatCounts) {
        return {"passed", fmt::format("{} for all of it\n", kNoTime), status};
      }
    } catch (const DataError& error) {
      return {"failed", fmt::format("{}\n{}", error.what(), text.Text()),
              status};
    }
  }
  const bool passed = status == 0 || status == stage.also_passes;
  return {passed ? "passed" : "failed", passed ? "" : text.Text(), status};
}

double Field(const Line& line, const char* key) {
  return line.contains(key) ? JsonNumber(line, key, key) : 0;
}

// One line for readers; "" if the record's line does not concern them.
std::string ForPeople(const Line& line) {
  const std::string kind = line["kind"];
  const auto text = [&](const char* key) {
    return line.contains(key) && line[key].is_string()
               ? line[key].get<std::string>()
               : std::string();
  };
  const auto time = [&] {
    return line.contains("seconds")
               ? fmt::format("{:.4g} ms", 1e3 * Field(line, "seconds"))
               : std::string("no time: simulated");
  };
  const auto share = [&] {
    return line.contains("share")
               ? fmt::format(", {:.0f} % of what the ceilings allow",
                             100 * Field(line, "share"))
               : std::string();
  };
  const auto verdict = [&] { return line["passed"] == true ? "ok" : "FAIL"; };
  if (kind == "facts") {
    return fmt::format("{} ({}), {}, {} free", text("model"),
                       text("architecture"), text("libraries"),
                       FormatBytes(line["memory_bytes"].get<int64_t>()));
  }
  if (kind == "probe") {
    return fmt::format("{}: {} ({})", verdict(), text("name"), text("answer"));
  }
  if (kind == "ceiling") {
    return line.contains("value")
               ? fmt::format("{}: {:.4g} {}", text("name"),
                             Field(line, "value"), text("unit"))
               : text("name") + ": no rate: simulated";
  }
  if (kind == "operation") {
    return fmt::format("{}: {} {}: {} cases, largest error/bound {:.3g} ({}){}",
                       verdict(), text("name"), text("precision"),
                       line["cases"].dump(), Field(line, "utilisation"),
                       text("bound"),
                       text("text").empty() ? "" : "\n" + text("text"));
  }
  if (kind == "check") {
    return fmt::format("{}: {} {}", verdict(), text("name"), text("text"));
  }
  if (kind == "time") {
    return fmt::format("{} {}, {}: {}{}", text("name"), text("precision"),
                       text("shape"), time(), share());
  }
  if (kind == "algorithm") {
    return fmt::format("{} {}, {}, algorithm {}: {}{}", text("name"),
                       text("precision"), text("shape"), line["choice"].dump(),
                       time(), share());
  }
  if (kind == "step") {
    return fmt::format(
        "{} {}, {:.3g} experts a token: {}", text("row"), text("precision"),
        Field(line, "active_experts"),
        line.contains("tokens_per_second")
            ? fmt::format("{:.0f} tokens/s (recompute {})",
                          Field(line, "tokens_per_second"), text("recompute"))
            : std::string("no time: simulated"));
  }
  return "";
}

class Run {
 public:
  Run(const std::vector<Stage>& stages, const RunOptions& options)
      : options_(options) {
    for (const Stage& stage : stages) {
      const bool wanted =
          options.only.empty() || stage.name == kFactsStage ||
          std::ranges::any_of(options.only, [&](const std::string& name) {
            return stage.name.starts_with(name);
          });
      if (wanted) stages_.push_back(stage);
    }
    for (const std::string& name : options.only) {
      if (std::ranges::none_of(stages, [&](const Stage& stage) {
            return stage.name.starts_with(name);
          })) {
        throw ConfigError("--only: no stage begins with '" + name + "'");
      }
    }
  }

  ExitCode Go() {
    golden::GpuRecordWriter::RequireNew(options_.record);
    for (size_t begin = 0; begin < stages_.size() && !signal_.requested();) {
      size_t end = begin + 1;
      while (stages_[begin].shares_device && end < stages_.size() &&
             stages_[end].shares_device) {
        ++end;
      }
      RunAndRecord(std::span(stages_).subspan(begin, end - begin));
      begin = end;
    }
    if (writer_ == nullptr) {
      signal_.ThrowIfRequested("nothing was found yet, so there is no record");
    }
    writer_->Write({{"kind", "end"},
                    {"passed", failures_.empty() && no_time_.empty() &&
                                   !signal_.requested()},
                    {"failed", failures_.Text()}});
    Print("record: " + options_.record.string() + "\n");
    signal_.ThrowIfRequested("what was found so far is in the record");
    if (!failures_.empty()) {
      Print("FAILED: " + failures_.Text() + "\n");
      return ExitCode::kFailed;
    }
    if (!no_time_.empty()) {
      Print(fmt::format("no time left for: {}; give more than {:g} minutes\n",
                        fmt::join(no_time_, ", "), options_.minutes));
      return ExitCode::kInconclusive;
    }
    Print(IsSimulated() ? "passed, on a simulated device\n" : "passed\n");
    return ExitCode::kDone;
  }

 private:
  // The record is opened only once there is a device.
  void OpenRecord() {
    writer_ = std::make_unique<golden::GpuRecordWriter>(options_.record);
    writer_->Write({{"kind", "run"},
                    {"version", golden::kGpuRecordVersion},
                    {"backend", IsSimulated() ? "simulated" : "cuda"},
                    {"program", CodeVersion()},
                    {"minutes", options_.minutes},
                    {"planted", options_.planted}});
  }

  void Record(Line line) {
    golden::CheckGpuLine(line, "a line of this stage");
    ceilings_.Look(line);
    if (const auto share = ceilings_.ShareOf(line)) line["share"] = *share;
    writer_->Write(line);
    failures_.Look(line);
    if (const std::string text = ForPeople(line); !text.empty()) {
      Print("  " + text + "\n");
    }
  }

  // Runs stages, several at a time if there are several, and records them in
  // their order.
  void RunAndRecord(std::span<const Stage> stages) {
    if (stages.size() == 1) {
      Print(stages[0].name + "\n");
      const StageEnd end = RunInTime(stages[0], [&](Line line) {
        if (writer_ == nullptr) OpenRecord();
        Record(std::move(line));
      });
      return RecordEnd(stages[0], end);
    }
    using Turns = std::counting_semaphore<kMostAtATime>;
    Turns turns(
        std::clamp(std::thread::hardware_concurrency(), 1u, kMostAtATime));
    struct Turn {
      explicit Turn(Turns* turns) : turns(turns) { turns->acquire(); }
      ~Turn() { turns->release(); }
      Turn(const Turn&) = delete;
      Turn& operator=(const Turn&) = delete;
      Turns* turns;
    };
    struct Finding {
      std::vector<Line> lines;
      StageEnd end;
    };
    std::vector<std::future<Finding>> findings;
    for (const Stage& stage : stages) {
      findings.push_back(std::async(std::launch::async, [&] {
        const Turn turn(&turns);
        Finding finding;
        finding.end = RunInTime(stage, [&](Line line) {
          golden::CheckGpuLine(line, "a line of this stage");
          finding.lines.push_back(std::move(line));
        });
        return finding;
      }));
    }
    for (size_t i = 0; i < stages.size(); ++i) {
      Finding finding = findings[i].get();
      Print(stages[i].name + "\n");
      if (writer_ == nullptr) OpenRecord();
      for (Line& line : finding.lines) Record(std::move(line));
      RecordEnd(stages[i], finding.end);
    }
  }

  // Runs a stage if there is time for it. The first one always has its full
  // time, since whether a device answers is not a matter of `minutes`.
  StageEnd RunInTime(const Stage& stage, const OnLine& on_line) {
    const bool is_first = stage.name == kFactsStage;
    const double left =
        is_first ? stage.seconds : 60 * options_.minutes - SecondsSince(begin_);
    if (!is_first && left < kLeastSeconds) return {kNotRun, kNoTime};
    if (signal_.requested()) return {"stopped", ""};
    const auto begin = Clock::now();
    const double limit = std::min(stage.seconds, left);
    StageEnd end = RunOne(stage, limit, signal_, on_line);
    if (stage.why_not.empty()) RemoveReport(stage);
    end.seconds = SecondsSince(begin);
    if (end.outcome == kTooLong && limit < stage.seconds) {
      end.outcome = kNotRun;
      end.text = fmt::format("{}\n{}", kNoTime, end.text);
    }
    return end;
  }

  // Records how a stage ended.
  void RecordEnd(const Stage& stage, const StageEnd& end) {
    if (end.text.starts_with(kNoTime)) no_time_.push_back(stage.name);
    if (writer_ == nullptr) {
      // This is kFactsStage; a record without facts is useless.
      signal_.ThrowIfRequested("nothing was found yet, and there is no record");
      if (end.outcome != "passed") {
        throw EnvironmentError(
            end.exit_status == static_cast<int>(ExitCode::kEnvironment)
                ? "nothing can be checked here: see above"
                : fmt::format("{} {}: the device does not answer; look at it "
                              "with nvidia-smi",
                              stage.name, end.outcome));
      }
      OpenRecord();
    }
    Line line = {{"kind", "stage"},
                 {"name", stage.name},
                 {"outcome", end.outcome},
                 {"text", end.text}};
    if (!IsSimulated()) line["seconds"] = end.seconds;
    writer_->Write(line);
    failures_.Look(line);
    if (stage.shares_device && end.outcome != kNotRun) {
      Print(end.text, stderr);
    }
    if (end.outcome == kNotRun) {
      Print(fmt::format("  {}: {}\n", kNotRun, end.text));
    } else if (end.outcome != "passed") {
      Print("  " + end.outcome + "\n");
    }
  }

  const RunOptions& options_;
  std::vector<Stage> stages_;
  const StopSignal signal_;
  const Clock::time_point begin_ = Clock::now();
  std::unique_ptr<golden::GpuRecordWriter> writer_;
  golden::GpuCeilings ceilings_;
  golden::GpuFailures failures_;
  std::vector<std::string> no_time_;
};

}  // namespace

ExitCode RunStages(const std::vector<Stage>& stages,
                   const RunOptions& options) {
  if (!(options.minutes > 0)) {
    throw ConfigError("--minutes must be more than 0");
  }
  return Run(stages, options).Go();
}

}  // namespace softmoe::gpu
