// SPDX-License-Identifier: Apache-2.0
//
// "serve:PATH": files of cases for somebody's program, and the program itself.
#include <fmt/core.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/files/temporary_folder.h"
#include "core/process/process.h"
#include "core/process/stop_signal.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/foreign/case_file.h"
#include "property_tests/verify/foreign/foreign_implementations.h"
#include "property_tests/verify/foreign/output_file.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// How much of the end of its stdout and stderr is kept.
constexpr size_t kMaxSaid = 16 << 10;
constexpr size_t kMaxWords = 400;
constexpr int kTickMilliseconds = 20;
// A line fits into a pipe that is read now and then.
constexpr double kSecondsToRead = 5;

void Keep(std::string& all, std::string_view bytes) {
  all += bytes;
  // The dots, so that the end of a line that is cut is not taken for a line.
  if (all.size() > kMaxSaid) {
    all.replace(0, all.size() - kMaxSaid / 2, "...");
  }
}

// How long a file of so many calls may take. A file of one case, which is one
// or two calls, decides about that case: each call may take all of its time. Of
// many calls few do, and losing their file costs only time, as does waiting for
// a program that hangs: one that has never answered may hang at all of them.
double SecondsFor(size_t calls, bool has_answered) {
  const double count = static_cast<double>(calls);
  const double most = has_answered ? std::max(2.0, count / 8) : 2;
  return std::min(CallSeconds() * std::min(count, most), kMaxSeconds);
}

double SecondsUntil(Clock::time_point time) {
  return std::chrono::duration<double>(time - Clock::now()).count();
}

// The program, started once and given a pair of files on every line of its
// stdin, which it answers with a line "done"; once it has ended it is started
// again. It runs in the user's working directory, in a process group of its
// own, without a terminal, and is killed when its time is up; whatever it does,
// this process goes on.
class Program {
 public:
  explicit Program(std::filesystem::path path);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Has the program read `cases` and write `outputs`, whose content is not
  // checked here. Throws RunFailure if it crashes, ends without an answer or
  // with a status other than 0, or is not done with the file's `calls` in time,
  // and EnvironmentError if it cannot be started. Says on stderr when they take
  // longer than one may. Once it is done, how it ends is for CheckEnd. What
  // it no longer reads, as it ends with 0 after an earlier answer, is given to
  // a new one.
  void Call(const std::filesystem::path& cases,
            const std::filesystem::path& outputs, size_t calls);

  // Closes its stdin and gives it two seconds to end by itself.
  void Finish();

  // Throws RunFailure, once, if it has crashed or ended with a status other
  // than 0 after an answer.
  void CheckEnd();

 private:
  void Start();
  void AwaitEnd();
  void NoteEnd(const std::string& end);  // of one that had answered
  // Lets go of the program, which has ended; returns "" if with status 0, and
  // otherwise a sentence.
  std::string Leave();
  // Reads what the program prints, for at most `milliseconds`; returns false
  // once it has closed its stdout and stderr.
  bool Listen(int milliseconds);
  bool IsDone() const;  // its last whole line is "done"
  std::string EndText() const;
  std::string LastWords() const;

  std::filesystem::path path_;
  std::optional<Process> process_;  // while it may run
  std::string said_, complained_;   // the ends of stdout and stderr
  std::string bad_end_;             // of one that had answered, until CheckEnd
  bool has_answered_ = false;       // any file yet
};

Program::Program(std::filesystem::path path) : path_(std::move(path)) {}

Program::~Program() {
  if (process_) AwaitEnd();
}

void Program::AwaitEnd() {
  process_->CloseInput();  // it then ends by itself
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (!process_->HasEnded() && SecondsUntil(deadline) > 0) {
    Listen(kTickMilliseconds);
  }
}

void Program::Finish() {
  if (process_) AwaitEnd();
  if (process_ && !process_->HasEnded()) process_.reset();
}

void Program::NoteEnd(const std::string& end) {
  if (!end.empty()) bad_end_ = "after an answer, " + end;
}

void Program::CheckEnd() {
  if (process_ && process_->HasEnded()) NoteEnd(Leave());
  if (bad_end_.empty()) return;
  throw RunFailure(std::exchange(bad_end_, ""));
}

void Program::Start() {
  ProcessOptions options;
  options.arguments = {path_.string()};
  options.folder = UserPath(".");
  options.output = ProcessOptions::Output::kApart;
  options.input = ProcessOptions::Input::kPipe;
  // Ctrl-C must reach only us, and what the program has started must end with
  // it.
  options.own_group = true;
  said_.clear();
  complained_.clear();
  process_.emplace(options);
}

bool Program::Listen(int milliseconds) {
  return process_->Listen(
      milliseconds, [this](Process::Stream stream, std::string_view bytes) {
        Keep(stream == Process::Stream::kOutput ? said_ : complained_, bytes);
      });
}

bool Program::IsDone() const {
  std::istringstream lines(said_);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() &&
           std::isspace(static_cast<unsigned char>(line.back()))) {
      line.pop_back();
    }
    if (line == "done" && !lines.eof()) return true;
  }
  return false;
}

std::string Program::EndText() const {
  const int signal = process_->Signal();
  return signal != 0
             ? fmt::format("crashed ({})", ::strsignal(signal))
             : fmt::format("ended with exit status {}", process_->ExitStatus());
}

std::string Program::LastWords() const {
  std::string words = AsUtf8(complained_.empty() ? said_ : complained_);
  for (char& letter : words) {
    if (letter == '\n') letter = ' ';
    // Keeps the terminal sequences of other programs out of our reports.
    if (static_cast<unsigned char>(letter) < 0x20) letter = '?';
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  if (words.size() > kMaxWords) {
    size_t begin = words.size() - kMaxWords;  // of a whole character
    while ((static_cast<unsigned char>(words[begin]) & 0xc0) == 0x80) ++begin;
    words = "..." + words.substr(begin);
  }
  return words.empty() ? "" : "; its last words: " + words;
}

void Program::Call(const std::filesystem::path& cases,
                   const std::filesystem::path& outputs, size_t calls) {
  const double seconds = SecondsFor(calls, has_answered_);
  if (process_ && process_->HasEnded()) NoteEnd(Leave());
  const bool may_leave = process_.has_value();  // one that has answered
  if (!process_) Start();
  said_.clear();
  // If it has ended meanwhile, or is about to, the code below finds out. One
  // that says "done" without reading what it is asked fills its stdin.
  if (!process_->Send(cases.string() + "\t" + outputs.string() + "\n",
                      std::min(seconds, kSecondsToRead)) &&
      !process_->Wait(1)) {
    process_.reset();
    throw RunFailure("the program does not read its stdin, and was ended" +
                     LastWords());
  }
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(seconds));
  bool told = calls == 1;
  const StopSignal signal;  // otherwise Ctrl-C would wait for the deadline
  while (!process_->HasEnded() && !IsDone()) {
    if (signal.requested()) {
      process_.reset();
      signal.ThrowIfRequested("a call of " + path_.string() + " was given up");
    }
    if (!told && SecondsUntil(deadline) <= seconds - CallSeconds()) {
      told = true;
      fmt::print(stderr,
                 "verify: serve:{}: not done with {} calls after {:g} s; "
                 "waiting for at most {:g} s (--timeout)\n",
                 path_.string(), calls, CallSeconds(), seconds);
    }
    if (SecondsUntil(deadline) <= 0) {
      process_.reset();
      throw RunFailure(fmt::format(
          "the program was not done after {:g} s ({}--timeout) and was ended{}",
          seconds, calls > 1 ? fmt::format("{} calls, ", calls) : "",
          LastWords()));
    }
    Listen(kTickMilliseconds);
  }
  has_answered_ = has_answered_ || IsDone();
  if (!process_->HasEnded()) return;
  const std::string end = Leave();
  if (IsDone()) return NoteEnd(end);
  if (may_leave && end.empty()) {
    std::error_code ignored;
    fs::remove_all(outputs, ignored);
    return Call(cases, outputs, calls);
  }
  throw RunFailure(end.empty() ? "the program ended without the line \"done\"" +
                                     LastWords()
                               : end);
}

std::string Program::Leave() {
  // Its last words are still in the pipes.
  for (int i = 0; i < 16 && Listen(0); ++i) {
  }
  const bool well = process_->Signal() == 0 && process_->ExitStatus() == 0;
  const std::string end = well ? "" : "the program " + EndText() + LastWords();
  process_.reset();
  return end;
}

constexpr int kBatch = 64;
constexpr int64_t kMaxBatchBytes = 64 << 20;

int64_t InputBytes(const Request& request) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : request.inputs) bytes += 8 * tensor.size();
  return bytes;
}

class ServeImplementation : public Implementation {
 public:
  explicit ServeImplementation(const std::string& argument)
      : name_("serve:" + argument), program_(CheckedPath("serve", argument)) {
    if (::access(CheckedPath("serve", argument).c_str(), X_OK) != 0) {
      throw ConfigError("impl " + name_ +
                        ": the file is not executable; chmod +x it");
    }
  }

  std::string name() const override { return name_; }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    (void)op, (void)dtype;
    return "";  // its answer says so
  }
  int batch() const override { return batch_; }
  bool Holds(const Case& c) const override {
    const int64_t calls = IsCheckedAfterAnother(c) ? 2 : 1;
    return std::ranges::count(held_, c, &Held::asked) == calls;
  }

  // Writes all cases into one file, each after the earlier call that it has, so
  // that a program which keeps state between cases has the chance to show it.
  void Prepare(const Operation& op, const std::vector<Case>& cases) override {
    std::vector<Request> requests;
    std::vector<Case> asked;  // the cases that the requests are for
    int64_t bytes = 0, num_cases = 0;
    const auto add = [&](const Case& c, const Case& data) {
      requests.push_back(requests_.Make(op, data, InputsOf(op, data)));
      bytes += InputBytes(requests.back()) + OutputBytes(requests.back());
      asked.push_back(c);
    };
    for (const Case& c : cases) {
      if (Holds(c) || bytes > kMaxBatchBytes) continue;
      DropLeftOver(c);
      if (IsCheckedAfterAnother(c)) add(c, OtherData(c));
      add(c, c);
      ++num_cases;
    }
    if (requests.empty()) return;
    try {
      std::vector<Answer> answers = Ask(requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        Hold(asked[i], std::move(requests[i].inputs), std::move(answers[i]));
      }
    } catch (const RunFailure& failure) {
      // In a file of many cases, run each alone to find out which one failed;
      // write no more files of many, in case they always fail.
      if (num_cases == 1) {
        Answer failed;
        failed.problem = failure.what();
        Hold(asked[0], std::move(requests[0].inputs), std::move(failed));
        return;
      }
      fmt::print(stderr,
                 "verify: {}: a file of {} cases was lost, and each of them is "
                 "asked for alone: {}\n",
                 name_, num_cases, failure.what());
      if (++lost_batches_ == kMaxLostBatches) batch_ = 1;
    }
  }

  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    (void)schedule;
    program_.CheckEnd();
    for (auto held = held_.begin(); held != held_.end(); ++held) {
      if (held->asked != c || held->inputs != inputs) continue;
      Answer answer = std::move(held->answer);
      held_.erase(held);
      return TakeOutputs(std::move(answer));
    }
    return TakeOutputs(Ask({requests_.Make(op, c, inputs)}).front());
  }
  void Finish() override {
    program_.Finish();
    program_.CheckEnd();
  }

 private:
  // An answer that Run has yet to ask for.
  struct Held {
    Case asked;
    TensorMap inputs;
    Answer answer;
  };
  static constexpr int kMaxLostBatches = 3;

  // Of two answers, the one that nobody asked for.
  void DropLeftOver(const Case& c) {
    std::erase_if(held_, [&](const Held& held) { return held.asked == c; });
  }

  void Hold(const Case& asked, TensorMap inputs, Answer answer) {
    held_.push_back({asked, std::move(inputs), std::move(answer)});
    // Cases that were announced but not yet asked for: at most two requests
    // each, of a batch of every operation, and as many that nobody asked for
    // any more.
    while (held_.size() > 4 * kBatch * Operations().size()) held_.pop_front();
  }

  std::vector<Answer> Ask(const std::vector<Request>& requests) {
    const fs::path cases = folder_.path() / "cases.h5";
    const fs::path outputs = folder_.path() / "outputs.h5";
    std::error_code ignored;
    // Never take the answer to an earlier call.
    fs::remove_all(outputs, ignored);
    WriteCaseFile(cases, requests);
    program_.Call(cases, outputs, requests.size());
    OutputFile answer = ReadOutputFile(outputs, requests);
    if (!answer.problem.empty()) throw RunFailure(answer.problem);
    return std::move(answer.answers);
  }

  std::string name_;
  PrivateFolder folder_;
  Program program_;
  Requests requests_;
  std::deque<Held> held_;
  int batch_ = kBatch, lost_batches_ = 0;
};

}  // namespace

std::unique_ptr<Implementation> MakeServeImplementation(
    const std::string& path) {
  return std::make_unique<ServeImplementation>(path);
}

}  // namespace softmoe::verify
