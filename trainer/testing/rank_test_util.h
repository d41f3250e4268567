// SPDX-License-Identifier: Apache-2.0
//
// rank_test_util.h - //:train on ranks that are processes, which tests watch,
// disturb, and compare with one process.
#ifndef SOFTMOE_TRAINER_TESTING_RANK_TEST_UTIL_H_
#define SOFTMOE_TRAINER_TESTING_RANK_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/process/process.h"
#include "core/process/subprocess.h"

namespace softmoe::trainer {

using Strings = std::vector<std::string>;

Strings Joined(Strings words, const Strings& more);

// How often `part` is in `text`.
int Count(std::string_view text, std::string_view part);

// A program that a test has started, and what it has printed so far.
class RunningProgram {
 public:
  explicit RunningProgram(const ProcessOptions& options);
  // Kills the ranks that it has named (see RankNamer), and waits.
  ~RunningProgram();

  // Waits until it has printed `text`. False if it ended before.
  bool Await(const std::string& text);
  // Waits until it has printed `text`, a number and something more. Returns the
  // number, or -1 if it ended before.
  int64_t AwaitNumber(const std::string& text);
  // Waits for its end; what it returned.
  int AwaitEnd();
  std::string output() const;
  // Waits until it has named a rank; the number of that process.
  pid_t ProcessOf(int rank);

 private:
  Process process_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_;
  bool ended_ = false;
  std::jthread reader_;
};

// What stands before a rank's command, so that it first says who it is:
// "process RANK NUMBER.". `rank` is a word of the shell.
Strings RankNamer(const std::string& rank);

// How ranks are started by environment variables. A test changes what one of
// them is given.
struct Given {
  Strings command;
  std::map<std::string, std::string> variables;
};
using Change = std::function<void(int rank, Given& given)>;
using RankPrograms = std::vector<std::unique_ptr<RunningProgram>>;

// Starts ranks over TCP in `folder`: first rank 0, and the others once it
// listens. Where it ends before, they are not started.
RankPrograms StartRanksIn(
    const std::filesystem::path& folder, int size, const Strings& command,
    const Change& change = [](int, Given&) {});
// Expects that all end with `code`.
void ExpectRanksEnd(const RankPrograms& ranks, int code);

class RankTest : public testing::Test {
 protected:
  // A folder with tokens and with configurations of 20 steps of four balance
  // groups: a tiny one, and one of the smoke grid's sizes.
  void SetUp() override;

  // The command of rank or process, which trains in the folder `run`.
  Strings Train(const std::string& run, const Strings& more = {}) const;
  // As one process, to its end.
  ProgramResult RunAlone(const std::string& run,
                         const Strings& more = {}) const;
  // Under mpirun, to their end.
  ProgramResult RunMpi(int ranks, const std::string& run,
                       const Strings& more = {}) const;

  using Given = trainer::Given;
  using Change = trainer::Change;
  using Ranks = RankPrograms;
  // StartRanksIn this test's folder.
  Ranks StartRanks(
      int size, const Strings& command,
      const Change& change = [](int, Given&) {}) const;
  // Starts one of them; `port` is where rank 0 listens, 0 for itself.
  std::unique_ptr<RunningProgram> StartRank(
      int rank, int size, int64_t port, const Strings& command,
      const Change& change = [](int, Given&) {}) const;
  // Where rank 0 listens, as it says; -1 if it ends before.
  static int64_t PortOf(RunningProgram& rank_0);
  // Expects that all end with `code`.
  static void ExpectEnd(const Ranks& ranks, int code);

  // The same results, checkpoints, logs and files.
  void ExpectSameRun(const std::string& expected, const std::string& got) const;

  static constexpr char kTiny[] = "tiny.toml", kSmoke[] = "smoke.toml";

  std::filesystem::path folder_, tokens_;
  // What Train runs, in its runfiles, and what it trains.
  std::string program_ = "trainer/run/train", config_ = kTiny;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TESTING_RANK_TEST_UTIL_H_
