// SPDX-License-Identifier: Apache-2.0
#include "trainer/testing/rank_test_util.h"

#include <signal.h>

#include <cctype>
#include <fstream>
#include <utility>

#include "core/config/config.h"
#include "core/testing/file_test_util.h"
#include "optimized/communicator/testing/mpi_test_util.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

// Returns the number after `before` in `text`, or -1.
int64_t NumberAfter(const std::string& text, const std::string& before) {
  const size_t at = text.find(before);
  if (at == std::string::npos) return -1;
  const size_t begin = at + before.size();
  size_t end = begin;
  while (end < text.size() && std::isdigit(text[end]) != 0) ++end;
  // At the end of the text the number may not be whole yet.
  return end == begin || end == text.size()
             ? -1
             : std::stoll(text.substr(begin, end - begin));
}

std::string NameOf(int rank) { return "process " + std::to_string(rank) + " "; }

}  // namespace

Strings Joined(Strings words, const Strings& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

RunningProgram::RunningProgram(const ProcessOptions& options)
    : process_(options), reader_([this] {
        process_.ListenToEnd([this](Process::Stream, std::string_view bytes) {
          const std::lock_guard<std::mutex> lock(mutex_);
          output_ += bytes;
          changed_.notify_all();
        });
        const std::lock_guard<std::mutex> lock(mutex_);
        ended_ = true;
        changed_.notify_all();
      }) {}

RunningProgram::~RunningProgram() {
  constexpr int kMostRanks = 16;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int rank = 0; rank < kMostRanks; ++rank) {
    const int64_t process = NumberAfter(output_, NameOf(rank));
    // After the end, the number may belong to another process.
    if (process > 0 && !ended_) ::kill(static_cast<pid_t>(process), SIGKILL);
  }
}

bool RunningProgram::Await(const std::string& text) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto printed = [&] { return output_.find(text) != std::string::npos; };
  changed_.wait(lock, [&] { return ended_ || printed(); });
  return printed();
}

int RunningProgram::AwaitEnd() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
  return process_.ExitStatus();
}

std::string RunningProgram::output() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return output_;
}

pid_t RunningProgram::ProcessOf(int rank) {
  const auto process = [&] { return NumberAfter(output_, NameOf(rank)); };
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || process() >= 0; });
  return static_cast<pid_t>(process());
}

std::unique_ptr<RunningProgram> StartRanksIn(
    const std::filesystem::path& folder, int size, const Strings& command,
    const Change& change) {
  ProcessOptions options;
  options.folder = folder;
  options.arguments = optimized::MpiRun(1);
  for (int rank = 0; rank < size; ++rank) {
    Strings own = Joined(command, {"--ranks", "mpi"});
    change(rank, own);
    const std::string namer =
        "echo \"process " + std::to_string(rank) + " $$.\"; exec \"$@\"";
    if (rank > 0) {
      options.arguments = Joined(options.arguments, {":", "-n", "1"});
    }
    options.arguments =
        Joined(Joined(options.arguments, {"sh", "-c", namer, "sh"}), own);
  }
  return std::make_unique<RunningProgram>(options);
}

void RankTest::SetUp() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "_" + test->name();
  for (char& letter : name) {
    if (letter == '/') letter = '_';
  }
  folder_ = FreshFolder(name);
  tokens_ = WriteTinyTokens(folder_ / "data");
  Config config = TinyConfig(RouterKind::kSoftLearned);
  config.training.steps = 20;
  config.training.global_batch_sequences = 8;  // four balance groups
  config.training.eval_every = 5;
  std::ofstream(folder_ / kTiny) << ConfigToToml(config);
  config = SmokeConfig(RouterKind::kSoftLearned);
  config.training.eval_every = 5;
  std::ofstream(folder_ / kSmoke) << ConfigToToml(config);
}

Strings RankTest::Train(const std::string& run, const Strings& more) const {
  return Joined({std::filesystem::absolute(program_).string(), "--config",
                 config_, "--data", tokens_.string(), "--threads", "1",
                 "--log-every", "1", "--out", (folder_ / run).string()},
                more);
}

ProgramResult RankTest::RunAlone(const std::string& run,
                                 const Strings& more) const {
  return RunProgram(Train(run, more), folder_);
}

ProgramResult RankTest::RunMpi(int ranks, const std::string& run,
                               const Strings& more) const {
  return RunProgram(Joined(optimized::MpiRun(ranks),
                           Joined(Train(run, more), {"--ranks", "mpi"})),
                    folder_);
}

std::unique_ptr<RunningProgram> RankTest::StartRanks(
    int size, const Strings& command, const Change& change) const {
  return StartRanksIn(folder_, size, command, change);
}

}  // namespace softmoe::trainer
