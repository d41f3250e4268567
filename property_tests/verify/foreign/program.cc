// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/program.h"

#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/files/paths.h"
#include "core/process/stop_signal.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/foreign/foreign_implementations.h"

namespace softmoe::verify {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The number of bytes kept from the ends of stdout and of stderr.
constexpr size_t kMaxSaid = 16 << 10;
constexpr size_t kMaxWords = 400;
constexpr int kTickMilliseconds = 20;
// A line fits into a pipe that is read now and then.
constexpr double kSecondsToRead = 5;

void Keep(std::string& all, std::string_view bytes) {
  all += bytes;
  // The dots keep the end of a cut line from being taken for a line.
  if (all.size() > kMaxSaid) {
    all.replace(0, all.size() - kMaxSaid / 2, "...");
  }
}

// How long a file of `calls` may take. A file of one case, one or two calls,
// decides about that case: each call may take its full time. Of many calls few
// do, and a lost file costs only time, as does waiting for a program that
// hangs: one that has never answered may hang at every file.
double SecondsFor(size_t calls, bool has_answered) {
  const double count = static_cast<double>(calls);
  const double most = has_answered ? std::max(2.0, count / 8) : 2;
  return std::min(CallSeconds() * std::min(count, most), kMaxSeconds);
}

double SecondsUntil(Clock::time_point time) {
  return std::chrono::duration<double>(time - Clock::now()).count();
}

}  // namespace

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
  const bool may_leave = process_.has_value();  // it has answered before
  if (!process_) Start();
  said_.clear();
  // If it has ended meanwhile, or is about to, the code below notices. The
  // stdin of a program that says "done" without reading it fills up.
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

}  // namespace softmoe::verify
