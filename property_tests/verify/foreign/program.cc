// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/program.h"

#include <fmt/format.h>
#include <string.h>

#include <chrono>
#include <sstream>

#include "core/files/paths.h"
#include "core/process/stop_signal.h"
#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {
namespace {

using Clock = std::chrono::steady_clock;

// How much of the end of its stdout and stderr is kept.
constexpr size_t kMaxSaid = 16 << 10;
constexpr size_t kMaxWords = 400;
constexpr int kTickMilliseconds = 20;

void Keep(std::string& all, std::string_view bytes) {
  all += bytes;
  if (all.size() > kMaxSaid) all.erase(0, all.size() - kMaxSaid / 2);
}

double SecondsUntil(Clock::time_point time) {
  return std::chrono::duration<double>(time - Clock::now()).count();
}

}  // namespace

Program::Program(std::filesystem::path path) : path_(std::move(path)) {}

Program::~Program() {
  if (!process_) return;
  process_->CloseInput();  // it then ends by itself
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (!process_->HasEnded() && SecondsUntil(deadline) > 0) {
    Listen(kTickMilliseconds);
  }
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
  std::string words = complained_.empty() ? said_ : complained_;
  for (char& letter : words) {
    if (letter == '\n') letter = ' ';
    // Keeps the terminal sequences of other programs out of our reports.
    if (static_cast<unsigned char>(letter) < 0x20) letter = '?';
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  if (words.size() > kMaxWords) {
    words = "..." + words.substr(words.size() - kMaxWords);
  }
  return words.empty() ? "" : "; its last words: " + words;
}

void Program::Call(const std::filesystem::path& cases,
                   const std::filesystem::path& outputs, double seconds) {
  if (process_ && process_->HasEnded()) process_.reset();
  if (!process_) Start();
  said_.clear();
  // If it has ended meanwhile, the code below finds out.
  process_->Send(cases.string() + "\t" + outputs.string() + "\n");
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(seconds));
  const StopSignal signal;  // otherwise Ctrl-C would wait for the deadline
  while (!process_->HasEnded() && !IsDone()) {
    if (signal.requested()) {
      process_.reset();
      signal.ThrowIfRequested("a call of " + path_.string() + " was given up");
    }
    if (SecondsUntil(deadline) <= 0) {
      process_.reset();
      throw RunFailure(fmt::format(
          "the program was not done after {:g} s (--timeout) and was ended{}",
          seconds, LastWords()));
    }
    Listen(kTickMilliseconds);
  }
  if (!process_->HasEnded()) return;
  // Its last words are still in the pipes.
  for (int i = 0; i < 16 && Listen(0); ++i) {
  }
  const bool well = process_->Signal() == 0 && process_->ExitStatus() == 0;
  const std::string end = EndText();
  process_.reset();
  if (well && IsDone()) return;
  if (well) {
    throw RunFailure("the program ended without the line \"done\"" +
                     LastWords());
  }
  throw RunFailure("the program " + end + LastWords());
}

}  // namespace softmoe::verify
